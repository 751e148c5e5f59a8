package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"

	"github.com/sqsonce/sqsonce"
	internal "github.com/sqsonce/sqsonce/internal/host"
)

// brokenErrors are errors that end a process whose host trusts them. The nil pointers are not nil as errors:
//
//	var e *fs.PathError
//	return e
func brokenErrors() map[string]error {
	return map[string]error{
		"a nil *fs.PathError":         (*fs.PathError)(nil),
		"a nil *net.OpError":          (*net.OpError)(nil),
		"a nil *url.Error":            (*url.Error)(nil),
		"a nil *sqsonce.RejectError":  (*sqsonce.RejectError)(nil),
		"a wrapped nil *fs.PathError": fmt.Errorf("read: %w", (*fs.PathError)(nil)),
		"a joined nil *fs.PathError":  errors.Join(errCard, (*fs.PathError)(nil)),
	}
}

// brokenScenarios are handlers, errors and settlement functions that panic. Each fails its message, or nothing at
// all; the message's record is released, and the process goes on.
func brokenScenarios() []scenario {
	var all []scenario
	for name, err := range brokenErrors() {
		text := internal.Usable(err).Error()
		all = append(all, scenario{
			name: name + " is returned, then done", script: first(fail(err)), want: onceMore(text), differ: sameReceive(text),
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
	)
}

var allScenarios = slices.Concat(handlerScenarios, failureScenarios, duplicateScenarios, groupScenarios, brokenScenarios())
