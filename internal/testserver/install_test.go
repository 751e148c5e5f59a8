package testserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

func TestInterruptedInstallationStartsAnew(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where the cache folder is on other systems
	runs := 0
	e := &Emulator{Name: "moto", Version: "0", fill: func(_ context.Context, dir string) error {
		runs++
		if _, err := os.Stat(filepath.Join(dir, "half")); err == nil {
			t.Error("the folder was not emptied")
		}
		must.Get(os.Stat(filepath.Join(dir, "requirements.txt")))(t)
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			return err
		}
		if runs == 1 {
			return os.ErrDeadlineExceeded
		}
		return nil
	}}
	if err := e.Install(t.Context()); err == nil || e.Installed() {
		t.Fatalf("got error %v and installed %v after an installation that failed", err, e.Installed())
	}
	for range 2 {
		if err := e.Install(t.Context()); err != nil || !e.Installed() {
			t.Fatalf("got error %v and installed %v, want it installed", err, e.Installed())
		}
	}
	if runs != 2 {
		t.Errorf("installed %d times, want 2", runs)
	}
	dir := must.Get(e.installation().dir())(t)
	other := installation{name: "emulators/moto-0", files: fstest.MapFS{"requirements.txt": {Data: []byte("other")}}}
	if got, err := other.dir(); err != nil || got == dir || other.complete() {
		t.Errorf("an installation from other files: got folder %s, complete %t and error %v; want a folder of its own that is not there", got, other.complete(), err)
	}
}

func TestLockExcludes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock := must.Get(lock(t.Context(), path))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); err == nil {
		t.Fatal("the lock was taken twice")
	}
	unlock()
	again := must.Get(lock(t.Context(), path))(t)
	again()
}

func TestInstallNodeWithoutNode(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := InstallNode(t.Context(), "none", fstest.MapFS{}); !errors.Is(err, ErrNoNode) {
		t.Errorf("got error %v, want ErrNoNode", err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]string{"no-such": t.TempDir() + "/new", "mysql": t.TempDir(), "redis-8": t.TempDir() + "/a'b"} {
		if setting, err := Unpack(t.Context(), name, folder); err == nil {
			t.Errorf("%s into %s: got %s, want an error", name, folder, setting)
		}
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"", off, install, required} {
		must.Do(t, checkMode(emulatorsVariable, m))
	}
	if err := checkMode(emulatorsVariable, "require"); err == nil {
		t.Error("EMULATORS=require was accepted")
	}
	if _, err := Redis.setUp(off); !errors.Is(err, errMissing) {
		t.Errorf("database, off: got error %v, want errMissing", err)
	}
	if _, err := Moto.setUp(off); !errors.Is(err, errMissing) {
		t.Errorf("emulator, off: got error %v, want errMissing", err)
	}
	if _, err := ExtendedClient.setUp(off); !errors.Is(err, errMissing) {
		t.Errorf("Python, off: got error %v, want errMissing", err)
	}
	none := &Database{Name: "None", programs: []string{"no-such-program"}, packages: []string{"none"}}
	if _, err := none.setUp(""); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "make emulators") {
		t.Errorf("missing: got error %v, want one that says how to install it", err)
	}
}

func TestMissingEmulatorSaysHowToGetIt(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	_, err := LocalStack.setUp("")
	_, pythonErr := ExtendedClient.setUp("")
	for _, err := range []error{err, pythonErr} {
		if err == nil || !strings.Contains(err.Error(), "make emulators") || !strings.Contains(err.Error(), "Python") {
			t.Errorf("got error %v, want one that says how to install it", err)
		}
	}
}
