package host

import (
	"errors"
	"runtime"
	"strings"
	"testing"

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
			if ok && (p.Value != tt.value || !strings.Contains(string(p.Stack), "recover_test.go")) {
				t.Errorf("got value %v and stack %s, want %v and the stack of what panicked", p.Value, p.Stack, tt.value)
			}
		})
	}
}

func TestRunPanicOfANilError(t *testing.T) {
	t.Parallel()
	Run(func() error { panic(nil) }, func(err error) {
		p, ok := errors.AsType[*sqsonce.PanicError](err)
		if !ok || p.Value == nil {
			t.Errorf("got %#v, want a PanicError that is told from Goexit", err)
		}
	})
}
