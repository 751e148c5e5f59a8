package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/mappings"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
)

// functionPlan is what a command would do with the mappings of a function.
type functionPlan struct {
	verb   string
	of     []mappings.Mapping
	to     mappings.Schedule
	length time.Duration // until the schedules fire
	after  string        // what the mappings are to be, if it begins now
	effect string
}

// hash covers the mappings that were seen, and what is to be.
func (p *functionPlan) hash(function string) planHash {
	parts := []any{p.verb, function, p.to.Reason, p.to.Role, p.length}
	for _, m := range p.of {
		parts = append(parts, m.UUID, m.State, m.Schedule)
	}
	return hashOf(parts...)
}

// mappingsOf returns the mappings of a function, or those from --queue, and says which it leaves out.
func (a *app) mappingsOf(ctx context.Context, function string, look func(context.Context, string) ([]mappings.Mapping, error)) ([]mappings.Mapping, error) {
	found, err := look(ctx, function)
	if errors.Is(err, mappings.ErrForeign) {
		return nil, fail(exitRefused, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	queue := a.flags.queue[strings.LastIndexAny(a.flags.queue, "/:")+1:]
	of := slices.DeleteFunc(slices.Clone(found), func(m mappings.Mapping) bool { return queue != "" && queueOf(m) != queue })
	switch {
	case len(found) == 0:
		return nil, fail(exitFailed, "function %s has no event source mapping from a queue in this Region", function)
	case len(of) == 0:
		return nil, fail(exitFailed, "function %s has no event source mapping from queue %s", function, queue)
	case len(of) < len(found):
		a.note("%d of the %d mappings of %s are from %s, and only they are meant", len(of), len(found), function, queue)
	}
	return of, nil
}

func queueOf(m mappings.Mapping) string { return m.Queue[strings.LastIndexByte(m.Queue, ':')+1:] }

// connectSwitch is for commands about functions.
func (a *app) connectSwitch(ctx context.Context) (*services, *mappings.Switch, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s, &mappings.Switch{Lambda: s.lambda, Scheduler: s.scheduler}, nil
}

// pauseFunction switches the mappings of a function off, each with a schedule that switches it on.
func (a *app) pauseFunction(ctx context.Context, f controlFlags) error {
	length, function := time.Duration(f.until), string(f.function)
	switch {
	case f.reason == "":
		return fail(exitUsage, "why? Set --reason")
	case length < mappings.Least || length > host.MostControl:
		return fail(exitUsage, "--until of a function must be %s to 7d", mappings.Least)
	case f.role == "":
		return fail(exitUsage, "nothing would switch the mapping on again: set --role to the ARN of a role that EventBridge Scheduler may assume and that has lambda:UpdateEventSourceMapping. template.yaml has one, SwitchBackRole")
	}
	s, sw, err := a.connectSwitch(ctx)
	if err != nil {
		return err
	}
	all, err := a.mappingsOf(ctx, function, sw.Settled)
	if err != nil {
		return err
	}
	p := a.newFunctionPlan(ctx, "pause", f)
	p.to.Role, p.length = f.role, length
	for _, m := range all {
		switch {
		case m.On() || m.Off() && m.Ours() || m.Resumes():
			p.of = append(p.of, m)
		case m.Off():
			a.note("mapping %s of %s is off already, and not by sqsonce: it stays off", m.UUID, queueOf(m))
		default:
			return fail(exitRefused, "mapping %s of %s is %s: look again in a minute", m.UUID, queueOf(m), m.State)
		}
	}
	if len(p.of) == 0 {
		return fail(exitRefused, "pause %s: every mapping is off already, and not by sqsonce", function)
	}
	ends := all[0].At.Add(length).UTC().Format("2006-01-02 15:04 UTC")
	p.after = "paused until about " + ends
	p.effect = "for " + shown.Brief(length, true) + ", until about " + ends + ", Lambda receives nothing for it. Handlers that run go on. The alarms unread and age ring. A deployment that changes the mapping may switch it on"
	return a.carryOutFunction(ctx, f, p, func(ctx context.Context) error {
		for _, m := range p.of {
			if err := a.checkRole(ctx, s, f, m); err != nil {
				return err
			}
			if err := a.checkLoss(ctx, function, m.Queue, f); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error {
		for _, m := range p.of { // all of them, before the first is off
			if err := sw.Write(ctx, m, p.to, length); err != nil {
				return fmt.Errorf("mapping %s of %s: %w. No mapping was switched off by this command", m.UUID, queueOf(m), err)
			}
		}
		for i, m := range p.of {
			if err := sw.SwitchOff(ctx, m, p.to.ID); err != nil {
				return fmt.Errorf("mapping %s of %s (%d of %d are off): %w", m.UUID, queueOf(m), i, len(p.of), err)
			}
		}
		return nil
	}, sw)
}

// resumeFunction switches on the mappings that a pause has switched off. Each schedule stays, and fires soon.
func (a *app) resumeFunction(ctx context.Context, f controlFlags) error {
	function := string(f.function)
	if f.reason == "" {
		return fail(exitUsage, "why? Set --reason")
	}
	_, sw, err := a.connectSwitch(ctx)
	if err != nil {
		return err
	}
	all, err := a.mappingsOf(ctx, function, sw.Look)
	if err != nil {
		return err
	}
	p := a.newFunctionPlan(ctx, "resume", f)
	p.to.Ended, p.after, p.effect = true, "open", "Lambda receives for it again within a minute or two"
	for _, m := range all {
		switch {
		case m.Ours() && !(m.On() && m.At.After(m.Schedule.At)) || m.Resumes():
			p.of = append(p.of, m)
		case m.Off():
			a.note("mapping %s of %s is off, and not by sqsonce: aws lambda update-event-source-mapping --enabled --uuid %s", m.UUID, queueOf(m), m.UUID)
		}
	}
	if len(p.of) == 0 {
		a.note("nothing to do: sqsonce has no mapping of %s switched off", function)
		return a.printFunction(p, function, all)
	}
	return a.carryOutFunction(ctx, f, p, func(context.Context) error { return nil }, func(ctx context.Context) error {
		for _, m := range p.of {
			if err := sw.SwitchOn(ctx, m); err != nil {
				return fmt.Errorf("mapping %s of %s: %w", m.UUID, queueOf(m), err)
			}
			to := p.to
			to.Role = m.Schedule.Role
			if err := sw.Write(ctx, m, to, 0); err != nil {
				return fmt.Errorf("mapping %s of %s is on, and its schedule still says that it is paused: %w", m.UUID, queueOf(m), err)
			}
		}
		return nil
	}, sw)
}

// newFunctionPlan also asks who makes the change.
func (a *app) newFunctionPlan(ctx context.Context, verb string, f controlFlags) *functionPlan {
	const mostBy = 200 // bytes: a schedule has room for both texts
	a.caller = a.who(ctx)
	return &functionPlan{verb: verb, to: mappings.Schedule{ID: rand.Text(), By: cut.Text(a.caller.by(), mostBy), Reason: f.reason}}
}

// checkRole refuses a role that cannot switch a mapping on.
func (a *app) checkRole(ctx context.Context, s *services, f controlFlags, m mappings.Mapping) error {
	function := string(f.function)
	err := mappings.CheckRole(ctx, s.iam, f.role, m)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mappings.ErrRole):
		return fail(exitRefused, "pause %s: mapping %s: %w", function, m.UUID, err)
	case f.yesRole:
		a.note("it is not known whether role %s may switch mapping %s on: %s", f.role, m.UUID, err.Error())
		return nil
	}
	return fmt.Errorf("pause %s: it is not known whether role %s may switch mapping %s on: look, then --yes-role: %w", function, f.role, m.UUID, err)
}

// carryOutFunction carries a plan out, after its question, and prints what the mappings are then.
func (a *app) carryOutFunction(ctx context.Context, f controlFlags, p *functionPlan, check, do func(context.Context) error, sw *mappings.Switch) error {
	function := string(f.function)
	if err := p.to.Check(); err != nil {
		return fail(exitUsage, "--reason: %w", err)
	}
	if err := a.asPlanned(p.hash(function)); err != nil {
		return err
	}
	for _, m := range p.of {
		is, _ := m.Is()
		a.note("mapping %s of %s is %s", m.UUID, queueOf(m), is)
	}
	if err := check(ctx); err != nil {
		return err
	}
	if a.flags.dryRun {
		a.note("would %s %s: %s", p.verb, function, p.effect)
		return a.printFunction(p, function, nil)
	}
	a.note("%s %s: %s", p.verb, function, p.effect)
	if err := a.confirm(ctx, question{verb: p.verb}); err != nil {
		return err
	}
	var before []object
	for _, m := range p.of {
		before = append(before, object{{"uuid", m.UUID}, {"queue", queueOf(m)}, {"state", m.State}})
	}
	change, err := a.audit(ctx, auditLine{What: p.verb, Function: function, Note: f.reason, Before: before, After: p.after})
	if err != nil {
		return err
	}
	if err := do(ctx); err != nil {
		see := a.commandLine([]string{"status", "--function", function}) + ". Run the same command again to continue. resume ends what it began"
		if errors.Is(err, mappings.ErrChanged) || errors.Is(err, mappings.ErrRole) {
			err = fail(exitRefused, "%w", err)
		}
		return errors.Join(fmt.Errorf("%s %s: %w\n  see: %s", p.verb, function, err, see), change.end(nil, err))
	}
	after, err := a.looked(ctx, p, sw, function)
	var holds []object
	for _, m := range after {
		is, _ := m.Is()
		holds = append(holds, object{{"uuid", m.UUID}, {"queue", queueOf(m)}, {"is", is}})
	}
	return errors.Join(err, change.end(holds, err), a.printFunction(p, function, after))
}

// looked reads the mappings of a plan after it. Another operator may have been at work too.
func (a *app) looked(ctx context.Context, p *functionPlan, sw *mappings.Switch, function string) ([]mappings.Mapping, error) {
	all, err := sw.Look(ctx, function)
	if err != nil {
		return nil, err
	}
	of := slices.DeleteFunc(all, func(m mappings.Mapping) bool {
		return !slices.ContainsFunc(p.of, func(b mappings.Mapping) bool { return b.UUID == m.UUID })
	})
	for _, b := range p.of {
		if !slices.ContainsFunc(of, func(m mappings.Mapping) bool { return b.UUID == m.UUID }) {
			err = errors.Join(err, fail(exitPart, "mapping %s of %s is not there any more", b.UUID, queueOf(b)))
		}
	}
	for _, m := range of {
		if m.Schedule == nil || m.Schedule.ID != p.to.ID {
			err = errors.Join(err, fail(exitRefused, "mapping %s of %s: %w", m.UUID, queueOf(m), mappings.ErrChanged))
		} else if is, ok := m.Is(); !ok {
			err = errors.Join(err, fail(exitPart, "mapping %s of %s is %s", m.UUID, queueOf(m), is))
		}
	}
	return of, err
}
