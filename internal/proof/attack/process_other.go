//go:build !unix

package attack

import "testing"

func processes(t *testing.T, _ Target, _ bool, _ settings) { t.Skip("needs SIGSTOP") }
