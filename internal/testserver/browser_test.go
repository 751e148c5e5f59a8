package testserver

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestBrowserIsMissing(t *testing.T) {
	for _, name := range []string{"PATH", "XDG_CACHE_HOME", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	if _, _, err := setUpBrowser(""); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "make emulators") {
		t.Errorf("missing: got error %v, want one that says how to install it", err)
	}
	if _, _, err := setUpBrowser(off); !errors.Is(err, errMissing) {
		t.Errorf("off: got error %v, want errMissing", err)
	}
	if _, _, err := setUpBrowser("require"); err == nil || errors.Is(err, errMissing) {
		t.Errorf("misspelt: got error %v, want one that fails the test", err)
	}
	if _, _, err := setUpBrowser(required); err == nil {
		t.Error("required: got no error without apt-get")
	}
}

func TestBrowse(t *testing.T) {
	t.Parallel()
	chromium, axe := Browse(t)
	for _, path := range []string{chromium, axe} {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
}
