package suite

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestKnownFailures(t *testing.T) {
	t.Parallel()
	o := Options{Known: map[string]string{"known": "reason"}}
	failed := errors.New("failed")
	for _, tt := range []struct {
		name string
		err  error
		want string // what is reported
	}{
		{"known", failed, ""},
		{"known", nil, "reason"},
		{"other", failed, "failed"},
		{"other", nil, ""},
	} {
		err := o.unexpected(tt.name, tt.err)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with error %v: got report %v, want %q", tt.name, tt.err, err, tt.want)
		}
	}
}

func TestNamesOfNoCase(t *testing.T) {
	t.Parallel()
	o := Options{Known: map[string]string{"a": "r", "misspelt": "r"}, Only: []string{"b", "bb"}}
	if got := o.unknown([]Case{{Name: "a"}, {Name: "b"}}); !slices.Equal(got, []string{"misspelt", "bb"}) {
		t.Errorf("got %q, want the two that no case has", got)
	}
}

func TestExamine(t *testing.T) {
	t.Parallel()
	for _, bubble := range []bool{true, false} {
		pass := Case{Run: func(*testing.T) {}}
		if err := pass.Examine(t, bubble); err != nil {
			t.Errorf("a case that passes: got error %v, want none", err)
		}
		fail := Case{Run: func(*testing.T) { Failf("got %d", 1) }}
		if err := fail.Examine(t, bubble); err == nil || err.Error() != "got 1" {
			t.Errorf("a case that fails: got error %v, want its own", err)
		}
		skip := Case{Run: func(*testing.T) { Unsupported("no clock") }}
		if _, ok := errors.AsType[unsupported](skip.Examine(t, bubble)); !ok {
			t.Error("a case that is not supported is not known as such")
		}
	}
}

func TestRunInBubbles(t *testing.T) {
	t.Parallel()
	var order []string
	add := func(name string) func(*testing.T) {
		return func(*testing.T) { time.Sleep(time.Hour); order = append(order, name) }
	}
	Run(t, []Case{
		{Name: "first", Run: add("first")},
		{Name: "skipped", Skip: "why", Run: add("skipped")},
		{Name: "unsupported", Run: func(*testing.T) { Unsupported("why") }},
		{Name: "not asked for", Run: add("not asked for")},
		{Name: "known", Run: func(*testing.T) { Failf("fails") }},
		{Name: "last", Run: add("last")},
	}, Options{Bubble: true, Known: map[string]string{"known": "why"}, Only: []string{"first", "skipped", "unsupported", "known", "last"}})
	if !slices.Equal(order, []string{"first", "last"}) {
		t.Errorf("ran %q, want first and last", order)
	}
}

// In real time a serial case runs before the others, and these run at the same time, as many as the options say.
func TestRunInRealTime(t *testing.T) {
	t.Parallel()
	const atOnce = 5
	var running, most atomic.Int64
	all := []Case{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		all = append(all, Case{Name: name, Run: func(*testing.T) {
			n := running.Add(1)
			defer running.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			for start := time.Now(); most.Load() < atOnce && time.Since(start) < 5*time.Second; {
				time.Sleep(time.Millisecond)
			}
		}})
	}
	all = append(all, Case{Name: "serial", Serial: true, Run: func(*testing.T) {
		if most.Load() != 0 {
			Failf("another case has run before")
		}
	}})
	Run(t, all, Options{AtOnce: atOnce})
	if most.Load() != atOnce {
		t.Errorf("%d cases ran at once, want %d", most.Load(), atOnce)
	}
}
