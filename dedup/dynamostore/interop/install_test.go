package interop_test

import (
	"context"
	"embed"
	"os"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

// The lock file has the exact packages.
//
//go:embed package.json package-lock.json powertools.mjs
var files embed.FS

// For the process, not for the test that runs first.
var installed = sync.OnceValues(func() (string, error) {
	return testserver.InstallNode(context.Background(), "interop/powertools", files)
})

// install returns the folder with Powertools. Where Powertools cannot be installed, the test is skipped with the reason, or
// fails with EMULATORS=required in the environment.
func install(t *testing.T) string {
	t.Helper()
	dir, err := installed()
	switch {
	case err == nil:
		return dir
	case os.Getenv("EMULATORS") == "required":
		t.Fatalf("EMULATORS=required, and Powertools cannot be installed: %v", err)
	default:
		t.Skipf("Powertools is not tested against: %v", err)
	}
	return ""
}
