package testserver

import (
	"errors"
	"strings"
	"testing"
)

func TestModes(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"", off, install, required} {
		if err := checkMode(emulatorsVariable, m); err != nil {
			t.Error(err)
		}
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
