package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Chromium is Debian's browser. Nothing pins its version: Debian's archive has only the newest.
var Chromium = &Browser{Name: "Chromium", packages: []string{"chromium", "fonts-liberation"}, program: "chromium"}

// Browser is a browser that Debian's packages install.
type Browser struct {
	Name string

	packages []string
	program  string
}

// AxeCore checks the accessibility of a page. Tests inject its script; it is MPL-2.0, and shipped with nothing.
var AxeCore = &Package{Name: "axe-core", Version: "4.14.1", folder: "node", needs: "npm", fill: npmInstall}

func (b *Browser) missing() ([]string, string) {
	if _, err := find(b.program); err != nil {
		return b.packages, b.program
	}
	return nil, ""
}

// Installed reports whether the browser can be started.
func (b *Browser) Installed() bool {
	_, program := b.missing()
	return program == ""
}

// Install installs the browser's Debian packages unless its program is found. It needs what [Install] needs.
func (b *Browser) Install(ctx context.Context) error { return installMissing(ctx, b.missing) }

// Browse returns the paths of Chromium's program and of the script of [AxeCore]. Without them the test is skipped or fails, as the
// environment variable BROWSER says; its values mean what those of EMULATORS do.
func Browse(t testing.TB) (chromium, axe string) {
	t.Helper()
	mode := os.Getenv(browserVariable)
	chromium, axe, err := setUpBrowser(mode)
	if err != nil {
		unavailable(t, mode, Chromium.Name+" with "+AxeCore.String(), err)
	}
	return chromium, axe
}

const browserVariable = "BROWSER"

func setUpBrowser(mode string) (chromium, axe string, err error) {
	if err := checkMode(browserVariable, mode); err != nil {
		return "", "", err
	}
	if mode == off {
		return "", "", fmt.Errorf("%w: %s=%s", errMissing, browserVariable, off)
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	if err := obtain(ctx, mode, "Debian and root", Chromium); err != nil {
		return "", "", err
	}
	dir, err := AxeCore.setUp(mode)
	if err != nil {
		return "", "", err
	}
	if chromium, err = find(Chromium.program); err != nil {
		return "", "", err
	}
	axe = filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	_, missing := os.Stat(axe)
	return chromium, axe, errors.Join(missing)
}
