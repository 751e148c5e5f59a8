package host

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

func TestRun(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for name, tt := range map[string]struct {
		f     func() error
		want  error
		panic bool
		value any
	}{
		"nil":        {f: func() error { return nil }},
		"error":      {f: func() error { return cause }, want: cause},
		"panic":      {f: func() error { panic("boom") }, panic: true, value: "boom"},
		"panic, err": {f: func() error { panic(cause) }, want: cause, panic: true, value: cause},
		"Goexit":     {f: func() error { runtime.Goexit(); return nil }, panic: true},
		"panic, nil": {f: func() error { panic(nil) }, panic: true, value: new(runtime.PanicNilError)}, // it is told from Goexit
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []error
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				Run(tt.f, func(err error) { got = append(got, err) })
			}()
			<-ended
			if len(got) != 1 {
				t.Fatalf("then was called %d times, want once", len(got))
			}
			if tt.want != nil && !errors.Is(got[0], tt.want) || tt.want == nil && !tt.panic && got[0] != nil {
				t.Errorf("got %v, want %v", got[0], tt.want)
			}
			p, ok := errors.AsType[*sqsonce.PanicError](got[0])
			if ok != tt.panic {
				t.Fatalf("got %v, want a PanicError: %t", got[0], tt.panic)
			}
			if ok && (!reflect.DeepEqual(p.Value, tt.value) || !strings.Contains(string(p.Stack), "recover_test.go")) {
				t.Errorf("got value %v and stack %s, want %v and the stack of what panicked", p.Value, p.Stack, tt.value)
			}
		})
	}
}

// The errors of these functions are not nil, and their methods panic.
func typedNils() map[string]error {
	return map[string]error{
		"fs.PathError":         error((*fs.PathError)(nil)),
		"net.OpError":          error((*net.OpError)(nil)),
		"url.Error":            error((*url.Error)(nil)),
		"sqsonce.PanicError":   error((*sqsonce.PanicError)(nil)),
		"wrapped fs.PathError": fmt.Errorf("read: %w", error((*fs.PathError)(nil))),
		"joined fs.PathError":  errors.Join(errors.New("read"), error((*fs.PathError)(nil))),
	}
}

func TestUsable(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"nil": nil, "plain": errors.New("plain"), "retry": sqsonce.RetryAfter(1, errors.New("plain")),
		"panic of an error": &sqsonce.PanicError{Value: errors.New("plain")},
	} {
		if got := Usable(err); got != err {
			t.Errorf("%s: got %v, want the error itself", name, got)
		}
	}
}

func TestRunOfABrokenError(t *testing.T) {
	t.Parallel()
	for name, err := range typedNils() {
		for how, f := range map[string]func() error{"returned": func() error { return err }, "passed to panic": func() error { panic(err) }} {
			Run(f, func(got error) {
				if _, ok := errors.AsType[*sqsonce.PanicError](got); !ok || sqsonce.OutcomeOf(got).Kind != sqsonce.OutcomeFailed || got.Error() == "" {
					t.Errorf("%s, %s: got %v, want a PanicError", name, how, got)
				}
			})
		}
	}
}

func TestRecover(t *testing.T) {
	t.Parallel()
	if err := Recover(func() {}); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	err := Recover(func() { panic("boom") })
	if p, ok := errors.AsType[*sqsonce.PanicError](err); !ok || p.Value != "boom" || len(p.Stack) == 0 {
		t.Errorf("got %v, want a PanicError with its stack", err)
	}
}

func TestContain(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	if err := Contain(func() error { return cause }); err != cause {
		t.Errorf("got %v, want the function's own error", err)
	}
	for name, tt := range map[string]struct {
		f      func()
		failed bool
	}{"returns": {func() {}, false}, "panics": {func() { panic("boom") }, true}, "exits": {runtime.Goexit, true}} {
		err := Contain(func() error { tt.f(); return nil }) // a Goexit of this goroutine would fail the test
		if _, ok := errors.AsType[*sqsonce.PanicError](err); ok != tt.failed || (err != nil) != tt.failed {
			t.Errorf("%s: got %v, want a PanicError: %t", name, err, tt.failed)
		}
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	err := sqsonce.RetryAfter(time.Second, WithEnded(sqsonce.ErrInProgress, ended))
	if got := Ended(fmt.Errorf("dedup: %w", err)); got != ended {
		t.Errorf("got %v, want the channel of WithEnded", got)
	}
	if !errors.Is(err, sqsonce.ErrInProgress) || err.Error() != "sqsonce: retry after 1s: sqsonce: in progress elsewhere" {
		t.Errorf("got %v, want the wrapped error's own text and matches", err)
	}
	if Ended(sqsonce.ErrInProgress) != nil {
		t.Error("an error without a channel: got one")
	}
}

func TestDescribed(t *testing.T) {
	t.Parallel()
	secret := errors.New("card 4929-1357 refused")
	for name, tt := range map[string]struct {
		describe func(error) string
		want     string
	}{
		"none":   {nil, secret.Error()},
		"own":    {func(err error) string { return "refused" }, "refused"},
		"empty":  {func(error) string { return "" }, ""},
		"panics": {func(err error) string { panic(err) }, "*errors.errorString: Options.ErrorText failed"},
	} {
		if err := Described(tt.describe, secret); err.Error() != tt.want || !errors.Is(err, secret) {
			t.Errorf("%s: %q, want %q", name, err, tt.want)
		}
		if err := Described(tt.describe, nil); err != nil {
			t.Errorf("%s: %v of no error", name, err)
		}
	}
}
