package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// queuePlan is what would be done now. A dry run of it decides: by the same code on the same messages, so the plan is what is
// done, unless something changes meanwhile.
type queuePlan struct {
	V             int           `json:"v"`
	Event         string        `json:"event"`     // "plan"
	Operation     string        `json:"operation"` // "redrive", "export", "delete", "restore"
	Queue         string        `json:"queue"`
	Total         int           `json:"total"` // messages in the queue, about, or in the archive
	Seen          int           `json:"seen"`  // by the plan
	Count         int           `json:"count"` // would be sent, archived or deleted
	Left          int           `json:"left"`  // selected, and left
	Rate          int           `json:"rate,omitempty"`
	Canary        int           `json:"canary,omitempty"`
	CanaryTimeout float64       `json:"canary_timeout_seconds,omitempty"`
	Destinations  []destination `json:"destinations,omitempty"` // of a redrive
	Groups        []planGroup   `json:"groups"`
	// Of a dry run for --plan: its hash, and what a person would be asked to type, where y is not enough.
	Hash  planHash `json:"hash,omitempty"`
	Typed string   `json:"typed,omitempty"`

	done      ops.Action
	named     bool              // the selection names what it means
	mixed     string            // a named class, with its messages by state, where their states differ
	unknown   int               // left, which --unknown sends
	completed int               // left, which need no redrive
	loops     int               // left, which --crash-loops sends
	planned   map[string]bool   // message IDs
	index     map[planGroup]int // of Groups, by the group without its count: there may be as many as messages
}

// destination is a queue that messages would go to.
type destination struct {
	Queue   string `json:"queue"`
	Count   int    `json:"count"`
	Waiting int    `json:"waiting"` // before them
}

// planGroup is the messages of one class and state of which the plan says the same.
type planGroup struct {
	Class  string            `json:"class"`
	Reason string            `json:"reason"`
	State  dedup.RecordState `json:"state"`
	Count  int               `json:"count"`
	Action ops.Action        `json:"action"` // planned, left
	Why    string            `json:"why,omitempty"`
}

func (r *redrive) plan(ctx context.Context) (*queuePlan, error) {
	var o ops.RedriveOptions
	r.options(&o)
	var mu sync.Mutex
	seen := owners{}
	report, err := r.d.Redrive(ctx, r.options, only(func(m *ops.Message) bool {
		mu.Lock()
		defer mu.Unlock()
		seen.add(m)
		return true
	}), func(o *ops.RedriveOptions) { o.DryRun = true })
	if err == nil {
		err = deniedOf(report)
	}
	if err != nil {
		return nil, err
	}
	p := newQueuePlan(r.operation, r.done, r.url, report)
	p.Hash, p.named = p.hash(r.url, report, seen), r.named
	if p.Rate, p.Canary = max(o.Rate, 0), max(o.Canary, 0); p.Canary > 0 {
		p.CanaryTimeout = o.CanaryTimeout.Seconds()
	}
	for i := range p.Destinations {
		if p.Destinations[i].Waiting, err = r.a.waiting(ctx, p.Destinations[i].Queue); err != nil {
			return nil, err
		}
		p.Destinations[i].Queue = host.QueueName(p.Destinations[i].Queue)
	}
	return p, nil
}

// only adds a filter of messages to those of the flags.
func only(filter func(*ops.Message) bool) func(*ops.RedriveOptions) {
	return func(o *ops.RedriveOptions) { o.Filter = with(o.Filter, filter) }
}

func newQueuePlan(operation string, done ops.Action, url string, report ops.Report) *queuePlan {
	p := &queuePlan{
		V: 1, Event: "plan", Operation: operation, Queue: host.QueueName(url), Total: max(report.Total, len(report.Results)), Seen: len(report.Results),
		Groups: []planGroup{}, done: done, planned: map[string]bool{}, index: map[planGroup]int{},
	}
	for _, res := range report.Results {
		p.add(res)
	}
	slices.SortStableFunc(p.Groups, func(a, b planGroup) int {
		return cmp.Or(-cmp.Compare(a.Action, b.Action), b.Count-a.Count, cmp.Compare(a.Class, b.Class), cmp.Compare(a.State, b.State))
	})
	return p
}

func (p *queuePlan) add(res *ops.Result) {
	g := planGroup{Class: res.Class.ID, Reason: res.Class.Text, State: res.State, Action: res.Action, Why: why(res)}
	switch {
	case g.Why == notSelected:
		return
	case res.Action == ops.ActionPlanned:
		p.Count++
		p.planned[res.ID] = true
		if p.done != ops.ActionRedriven {
			break
		}
		i := slices.IndexFunc(p.Destinations, func(d destination) bool { return d.Queue == res.Destination })
		if i < 0 {
			i = len(p.Destinations)
			p.Destinations = append(p.Destinations, destination{Queue: res.Destination})
		}
		p.Destinations[i].Count++
	default:
		p.Left++
		if p.done == ops.ActionRedriven && completedAlready(res) {
			p.completed++
		}
		if errors.Is(res.Err, ops.ErrState) && errors.Is(res.Err, ops.ErrNoRecord) && !errors.Is(res.Err, ops.ErrExpired) {
			p.unknown++
		}
		if errors.Is(res.Err, ops.ErrCrashLoop) {
			p.loops++
		}
	}
	i, seen := p.index[g]
	if !seen {
		i = len(p.Groups)
		p.index[g], p.Groups = i, append(p.Groups, g)
	}
	p.Groups[i].Count++
}

// mixedClass says of which class messages in several states are meant, which need not be treated alike. The ID says nothing of states.
func (p *queuePlan) mixedClass() string {
	states := map[string][]string{}
	for _, g := range p.Groups {
		if g.Action == ops.ActionPlanned {
			states[g.Class] = append(states[g.Class], fmt.Sprintf("%d %s", g.Count, g.State))
		}
	}
	for _, class := range slices.Sorted(maps.Keys(states)) {
		if of := states[class]; len(of) > 1 {
			return "class " + class + " has messages of several states: " + strings.Join(of, ", ") + ". --state selects one"
		}
	}
	return ""
}

// waiting returns how many messages a queue has, about.
func (a *app) waiting(ctx context.Context, url string) (int, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return 0, err
	}
	const name = sqstypes.QueueAttributeNameApproximateNumberOfMessages
	out, err := s.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{name}})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out.Attributes[string(name)])
}

// errNoneSelected is more than nothing to do: the name of a class, an event, a message or a group may be mistyped.
var errNoneSelected = fail(exitRefused, "no message is selected: nothing was changed. dlq ls shows what is there. A message may still be in its source queue, or in another one, and a key function may make other keys")

// none is the error of a plan that does nothing, where there is something that it should do.
func (p *queuePlan) none(dryRun bool) error {
	switch {
	case !dryRun && p.named && p.Left == 0 && p.Seen > 0 && p.Seen == p.Total:
		return errNoneSelected
	case dryRun || p.Left == p.completed && p.Seen == p.Total:
		return nil
	}
	return fail(exitPart, "no message can be %s: left are %s that you selected, and %d were not seen", p.done, shown.Count(p.Left-p.completed, "message"), p.Total-p.Seen)
}

// showPlan shows the plan beside the question.
func (a *app) showPlan(p *queuePlan) {
	a.note("%s", p)
	_ = writeTable(a.err, cmp.Or(a.width, 100), planHeader, p.rows()) // as a note: the question shows that it cannot be read
}

// printPlan prints the plan as the result.
func (a *app) printPlan(p *queuePlan) error {
	a.note("%s", p)
	if a.flags.json {
		return a.printJSON(p)
	}
	return a.printTable(planHeader, p.rows())
}

var planHeader = []string{"CLASS", "COUNT", "STATE", "PLAN", "REASON"}

func (p *queuePlan) rows() (rows [][]string) {
	for _, g := range p.Groups {
		plan, reason := p.Operation, g.Reason
		if g.Action != ops.ActionPlanned {
			plan, reason = "leave", g.Why
		}
		rows = append(rows, []string{g.Class, strconv.Itoa(g.Count), string(g.State), plan, reason})
	}
	return rows
}

func (p *queuePlan) String() string {
	text := fmt.Sprintf("%s: %d of about %s would be %s", p.Queue, p.Count, shown.Count(p.Total, "message"), p.done)
	if p.Left > 0 {
		text += fmt.Sprintf(", %d that are selected would be left", p.Left)
		if p.completed > 0 {
			text += fmt.Sprintf(", %d of them completed: dlq delete --completed", p.completed)
		}
	}
	if hidden := p.Total - p.Seen; hidden > 0 {
		text += fmt.Sprintf(", %d were not seen: %s", hidden, notSeen)
	}
	if p.done == ops.ActionRestored {
		return text + "."
	}
	text += ". Each was received once for this plan."
	if p.Count == 0 || p.done != ops.ActionRedriven {
		return text
	}
	var to []string
	for _, d := range p.Destinations {
		to = append(to, fmt.Sprintf("%d to %s, where about %d wait", d.Count, d.Queue, d.Waiting))
	}
	text += " " + strings.Join(to, "; ") + ". "
	if p.Rate > 0 {
		text += fmt.Sprintf("%d a second", p.Rate)
	} else {
		text += "As fast as SQS accepts them"
	}
	if p.Canary > 0 {
		text += fmt.Sprintf(", the first %d of each reason (after 10 reasons: of each class) as a canary, which must be completed within %s after the queue's delay", p.Canary, shown.Brief(time.Duration(p.CanaryTimeout*float64(time.Second)), true))
	} else {
		text += ", without a canary"
	}
	sends := func(s dedup.RecordState) bool {
		return slices.ContainsFunc(p.Groups, func(g planGroup) bool { return g.Action == ops.ActionPlanned && g.State == s })
	}
	if p.Canary > 0 && sends(ops.StateUnknown) {
		text += ". A canary that completes proves that the consumer runs such an event now, and keeps its record under this key. It does not prove that the unknown events had not run before. Where no record appears the redrive stops, and the canary may have run: --canary 0 sends without one"
	}
	for _, risk := range risks(sends) {
		text += ". " + risk
	}
	return text + "."
}

// risks are what a redrive may do to events in the states that it sends.
func risks(sends func(dedup.RecordState) bool) (text []string) {
	if sends(dedup.StateReleased) {
		text = append(text, "A released event may have had its effect before it failed, and runs again from the beginning")
	}
	if sends(ops.StateUnknown) {
		text = append(text, "An unknown event may have run before, and may run again")
	}
	if sends(dedup.StateCrashed) {
		text = append(text, "A crashed event may have had its effect, and runs again, but under dedup.OnCrashBlock a consumer refuses it until you free its record")
	}
	if sends(ops.StateUnknown) {
		text = append(text, "An unknown event may have had its effect, and may run again")
	}
	return text
}

// planFlag is for who shows a dry run to somebody, and then does what was shown: the console.
func (a *app) planFlag(c *cobra.Command) {
	c.Flags().Var(&a.flags.plan, "plan", "refuse where anything has changed since the dry run with --json that had this `hash`")
	c.MarkFlagsMutuallyExclusive("plan", "dry-run")
}

// planHash is what hashOf returns. "" is no plan; a flag is never that: a variable that is not set is no consent.
type planHash string

func (h *planHash) Set(s string) error {
	if sum, err := hex.DecodeString(s); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("%q is not the hash of a dry run", s)
	}
	*h = planHash(s)
	return nil
}

func (h *planHash) Type() string   { return "hash" }
func (h *planHash) String() string { return string(*h) }

// asPlanned compares a plan with that of --plan.
func (a *app) asPlanned(hash planHash) error {
	if a.flags.plan != "" && a.flags.plan != hash {
		return fail(exitRefused, "changed since you looked: list again. Nothing was changed")
	}
	return nil
}

// hashOf is the SHA-256 of parts, which JSON keeps apart.
func hashOf(parts ...any) planHash {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(parts); err != nil {
		panic(fmt.Sprintf("sqsonce: a plan's hash: %v", err)) // strings and numbers
	}
	return planHash(hex.EncodeToString(sum.Sum(nil)))
}

// owners has whose the records of messages were when a dry run read them, by message ID.
type owners map[string]owner

type owner struct {
	name  string
	fence int64
}

func (o owners) add(m *ops.Message) {
	if m.Record != nil {
		o[m.ID] = owner{m.Record.Owner, m.Record.Fence}
	}
}

// hash covers what is to be done with each message that is meant, and whose its record is: one in the same state may be of another
// try by now.
func (p *queuePlan) hash(url string, report ops.Report, of owners) planHash {
	lines := map[string]any{}
	for _, res := range report.Results {
		if why(res) == notSelected {
			continue
		}
		o := of[res.ID]
		lines[res.ID] = []any{res.Action, why(res), res.State, res.Class.ID, res.Group, res.RecordKey, res.Destination, o.name, o.fence}
	}
	return hashOf(p.Operation, url, lines) // JSON sorts by ID
}

// hash covers whose the record is, and what is to become of it.
func (p *plan) hash() planHash { return hashOf(p.verb, p.Key, p.state, p.Owner, p.Fence, p.after) }
