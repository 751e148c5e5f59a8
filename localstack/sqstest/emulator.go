package sqstest

import (
	"testing"

	"github.com/sqsonce/sqsonce/localstack/internal/emulator"
)

// Main is the TestMain of a package that uses [ElasticMQ] or [LocalStack]: it runs the tests and ends the emulators.
func Main(m *testing.M) { emulator.Main(m) }

// ElasticMQ returns the URL of ElasticMQ, an emulator of SQS in Scala, which the first call in the process starts. Where
// it is not installed the test is skipped and says so, and fails with EMULATORS=required in the environment.
func ElasticMQ(t testing.TB) string {
	t.Helper()
	return emulator.ElasticMQ.Start(t).URL
}

// LocalStack is [ElasticMQ] for LocalStack, an emulator in Python.
func LocalStack(t testing.TB) string {
	t.Helper()
	return emulator.LocalStack.Start(t).URL
}
