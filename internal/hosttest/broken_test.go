package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os/exec"
	"slices"
	"strconv"

	"github.com/sqsonce/sqsonce"
	internal "github.com/sqsonce/sqsonce/internal/host"
)

// brokenError is an error of the user's whose methods panic.
type brokenError struct{ method string }

func (e brokenError) check(method string) {
	if e.method == method {
		panic(method + " is broken")
	}
}

func (e brokenError) Error() string { e.check("Error"); return "broken" }
func (e brokenError) Is(error) bool { e.check("Is"); return false }
func (e brokenError) As(any) bool   { e.check("As"); return false }
func (e brokenError) Unwrap() error { e.check("Unwrap"); return nil }

// brokenErrors are errors that end a process whose host trusts them. The nil pointers are not nil as errors:
//
//	var e *fs.PathError
//	return e
func brokenErrors() map[string]error {
	broken := map[string]error{
		"a nil *fs.PathError":         (*fs.PathError)(nil),
		"a nil *net.OpError":          (*net.OpError)(nil),
		"a nil *url.Error":            (*url.Error)(nil),
		"a nil *strconv.NumError":     (*strconv.NumError)(nil),
		"a nil *exec.Error":           (*exec.Error)(nil),
		"a nil *sqsonce.RejectError":  (*sqsonce.RejectError)(nil),
		"a wrapped nil *fs.PathError": fmt.Errorf("read: %w", (*fs.PathError)(nil)),
		"a joined nil *fs.PathError":  errors.Join(errCard, (*fs.PathError)(nil)),
	}
	for _, method := range []string{"Error", "Is", "As", "Unwrap"} {
		broken["an error whose "+method+" panics"] = brokenError{method}
		if method != "Error" { // fmt recovers from that, and the Reject is one
			broken["a Reject of an error whose "+method+" panics"] = sqsonce.Reject(brokenError{method})
		}
	}
	return broken
}

// brokenScenarios are handlers, errors, settlement functions and loggers that panic. Each fails its message, or nothing at
// all; the message's record is released, and the process goes on.
func brokenScenarios() []scenario {
	var all []scenario
	for name, err := range brokenErrors() {
		text := internal.Usable(err).Error()
		all = append(all, scenario{
			name: name + " is returned, then done", script: first(fail(err)), want: onceMore(text), differ: sameReceive(text),
		})
	}
	for name, value := range map[string]any{
		"a nil *fs.PathError": (*fs.PathError)(nil), "an error whose Unwrap panics": brokenError{"Unwrap"}, "an error whose Error panics": brokenError{"Error"},
	} {
		panicked := func(context.Context, *run) error { panic(value) }
		text := fmt.Sprintf("sqsonce: handler panicked: %v", value)
		all = append(all, scenario{
			name: name + " is passed to panic, then done", script: first(panicked), want: onceMore(text), differ: sameReceive(text),
		})
	}
	settles := func(s script) script {
		return func(ctx context.Context, r *run) error {
			sqsonce.OnSettled(ctx, func(bool) { panic("settled") })
			defer sqsonce.OnSettled(ctx, func(bool) { panic((*fs.PathError)(nil)) })
			return s(ctx, r)
		}
	}
	return append(all,
		scenario{name: "OnSettled panics, done", script: settles(succeed), want: endStates{"a1": {Status: done, Attempts: 1, Runs: 1}}},
		scenario{name: "OnSettled panics, error, then done", script: first(settles(fail(errCard))), want: onceMore("card refused"), differ: sameReceive("card refused")},
		scenario{
			name: "OnSettled panics, Reject", script: settles(fail(sqsonce.Reject(errCard))),
			want:   endStates{"a1": {Status: released, Error: rejectText, Attempts: 1, Dead: rejectText, Runs: 1}},
			differ: []difference{{hosts: []string{bareFunction}, because: bareRejects, want: forever(rejectText)}},
		},
		scenario{
			name: "the logger panics", script: first(fail(errCard)), want: onceMore("card refused"), differ: sameReceive("card refused"),
			before: func(w *fixture) { w.log = slog.New(brokenLogger{slog.DiscardHandler}) },
		},
	)
}

// brokenLogger is a slog.Handler that panics.
type brokenLogger struct{ slog.Handler }

func (brokenLogger) Enabled(context.Context, slog.Level) bool { return true }

func (brokenLogger) Handle(context.Context, slog.Record) error { panic("the logger is broken") }

func (h brokenLogger) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h brokenLogger) WithGroup(string) slog.Handler { return h }

var allScenarios = slices.Concat(handlerScenarios, failureScenarios, duplicateScenarios, groupScenarios, brokenScenarios())
