package ddbtest

import (
	"testing"

	"github.com/sqsonce/sqsonce/localstack/internal/emulator"
)

// Main is the TestMain of a package that uses [Dynoxide]: it runs the tests and ends the emulator.
func Main(m *testing.M) { emulator.Main(m) }

// Dynoxide returns the URL of dynoxide, an emulator of DynamoDB in Rust, which the first call in the process starts.
// Where it is not installed the test is skipped and says so, and fails with EMULATORS=required in the environment.
func Dynoxide(t testing.TB) string {
	t.Helper()
	return emulator.Dynoxide.Start(t).URL
}
