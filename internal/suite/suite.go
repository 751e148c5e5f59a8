// Package suite runs conformance suites. A suite is a list of cases, each of which checks one rule that an implementation
// must follow. An implementation may be known to break some rules: its list of them is checked too, so that it stays true.
package suite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// Case checks one rule.
type Case struct {
	// Name is the subtest's.
	Name string
	// Skip is why the case cannot run on this implementation. Default: it runs.
	Skip string
	// Serial is for a case that other cases must not run beside: it runs before them. With [Options.Bubble] every case is
	// one of these.
	Serial bool
	// Run returns if the implementation follows the rule, and else calls [Failf]. It may also call [Unsupported].
	Run func(t *testing.T)
}

// Options say how to run a suite.
type Options struct {
	// Known are the cases that the implementation is known to fail, with the reason. One that passes, or that does not
	// exist, is a failure.
	Known map[string]string
	// Only, if not nil, are the cases to run. One that does not exist is a failure.
	Only []string
	// Bubble runs each case in a synctest bubble, in the order of the list. Default: in real time.
	Bubble bool
	// AtOnce is how many cases run at the same time in real time. They wait more than they work, so that the limit of
	// go test, the number of processors, would be far too low. Default: 1.
	AtOnce int
}

// Run runs every case as a subtest.
func Run(t *testing.T, all []Case, o Options) {
	t.Helper()
	for _, name := range o.unknown(all) {
		t.Errorf("no case is named %q", name)
	}
	var beside []Case
	for _, c := range all {
		switch {
		case o.Only != nil && !slices.Contains(o.Only, c.Name):
		case o.Bubble || c.Serial || o.AtOnce <= 1:
			o.run(t, c)
		default:
			beside = append(beside, c)
		}
	}
	slots := make(chan struct{}, max(o.AtOnce, 1))
	var wg sync.WaitGroup
	for _, c := range beside {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			o.run(t, c)
		})
	}
	wg.Wait()
}

func (o Options) run(t *testing.T, c Case) {
	t.Run(c.Name, func(t *testing.T) {
		if c.Skip != "" {
			t.Skip(c.Skip)
		}
		err := c.Examine(t, o.Bubble)
		if reason, ok := errors.AsType[unsupported](err); ok {
			t.Skip(reason)
		}
		if problem := o.unexpected(c.Name, err); problem != nil {
			t.Error(problem)
		} else if err != nil {
			t.Logf("fails, as is known (%s): %v", o.Known[c.Name], err)
		}
	})
}

// unexpected returns what is reported of a case that ended with err; nil for a pass and for a known failure.
func (o Options) unexpected(name string, err error) error {
	reason, known := o.Known[name]
	switch {
	case !known:
		return err
	case err == nil:
		return fmt.Errorf("passes, but is listed as known to fail: %s", reason)
	}
	return nil
}

// unknown returns the names in Known and Only that no case has.
func (o Options) unknown(all []Case) []string {
	names := slices.Concat(slices.Sorted(maps.Keys(o.Known)), o.Only)
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(all, func(c Case) bool { return c.Name == name })
	})
}

// Examine runs the case, in a synctest bubble or in real time, and returns why it failed. It reports nothing to t: tests of
// a suite use it to show that a case fails.
func (c Case) Examine(t *testing.T, bubble bool) (err error) {
	if !bubble {
		return c.examine(t)
	}
	synctest.Test(t, func(t *testing.T) { err = c.examine(t) })
	return err
}

func (c Case) examine(t *testing.T) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = v
		case unsupported:
			err = v
		default:
			panic(v)
		}
	}()
	c.Run(t)
	return nil
}

// failure and unsupported end a case by a panic. t.FailNow would fail the test also where the failure is known or wanted.
type failure string

func (f failure) Error() string { return string(f) }

type unsupported string

func (u unsupported) Error() string { return string(u) }

// Failf ends the case that calls it: the implementation breaks the rule. It must be called in the goroutine of Run.
func Failf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// Unsupported ends the case that calls it as skipped: the implementation has no means for it. It must be called in the
// goroutine of Run.
func Unsupported(reason string) { panic(unsupported(reason)) }

// Get returns v, or ends the case that calls it by [Failf] if there is an error.
func Get[T any](v T, err error) T {
	if err != nil {
		Failf("got error %v, want none", err)
	}
	return v
}

// Defect is an implementation that breaks one rule, and the name of the case that must fail on it. Other cases may fail too.
type Defect [2]string

// SeesDefects checks a suite by its cases on implementations with each defect ("": none), in bubbles: each defect is seen by its case,
// and each case sees a defect and passes without one.
func SeesDefects(t *testing.T, defects []Defect, cases func(defect string) []Case) {
	examine := func(t *testing.T, defect, name string) error {
		all := cases(defect)
		i := slices.IndexFunc(all, func(c Case) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("no case %q", name)
		}
		return all[i].Examine(t, true)
	}
	for _, d := range defects {
		t.Run(d[0], func(t *testing.T) {
			if examine(t, d[0], d[1]) == nil {
				t.Errorf("case %q passes on an implementation that %s", d[1], d[0])
			}
		})
	}
	seen := map[string]bool{}
	for _, c := range cases("") {
		t.Run(c.Name, func(t *testing.T) {
			if seen[c.Name] {
				t.Error("two cases have this name")
			}
			seen[c.Name] = true
			err := examine(t, "", c.Name)
			if _, ok := errors.AsType[unsupported](err); ok {
				return // the harness has no means for it
			}
			if err != nil {
				t.Errorf("fails on a correct implementation: %v", err)
			}
			// A case that passes on every implementation proves nothing.
			if !slices.ContainsFunc(defects, func(d Defect) bool { return examine(t, d[0], c.Name) != nil }) {
				t.Error("passes on every broken implementation")
			}
		})
	}
}
