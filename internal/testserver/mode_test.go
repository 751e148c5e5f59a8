package testserver

import (
	"errors"
	"strings"
	"testing"
)

func TestModes(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"", off, install, required} {
		if err := checkMode(m); err != nil {
			t.Error(err)
		}
	}
	if err := checkMode("require"); err == nil {
		t.Error("EMULATORS=require was taken")
	}
	if _, err := Redis.setUp(off); !errors.Is(err, errMissing) {
		t.Errorf("off: got error %v, want errMissing", err)
	}
	none := &Database{Name: "None", programs: []string{"no-such-program"}, packages: []string{"none"}}
	if _, err := none.setUp(""); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "make emulators") {
		t.Errorf("missing: got error %v, want one that says how to install it", err)
	}
}
