// Package killtest_test has a fleet of processes use one table while they are killed, stopped and cut off: see package attack.
package killtest_test

import (
	"testing"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
