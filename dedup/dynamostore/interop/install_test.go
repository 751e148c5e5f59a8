package interop_test

import (
	"context"
	"embed"
	"os"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

// The exact packages are in the lock file.
//
//go:embed package.json package-lock.json powertools.mjs
var files embed.FS

// Of the process, not of the test that happens to come first.
var installed = sync.OnceValues(func() (string, error) {
	return testserver.InstallNode(context.Background(), "interop/powertools", files)
})

// install returns the folder with Powertools. Where it cannot be installed the test is skipped and says so, and fails
// with EMULATORS=required in the environment.
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
