// Package mappings switches event source mappings off for a time. A one-time schedule of EventBridge Scheduler, which is made first,
// switches each one on again.
//
// Neither a kill at any point nor two operators at once leave a mapping off for ever. These rules give that:
//
//   - A mapping has one schedule, whose name is made of the mapping's. It is never deleted.
//   - Each write of a schedule has it fire at least [Least] later.
//   - A mapping is switched off only after a read that shows that its schedule fires in 7 min or later. The request is signed within a
//     minute of that read, and AWS refuses a signature that is older than 5 min. So the request comes before the schedule, also from
//     a process that was suspended.
//   - All times are those of AWS's clock, from the Date of its answers.
package mappings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go/middleware"
)

// mostPages bounds lists: what answers with a next page for ever is not followed.
const mostPages = 50

// List returns the mappings that read from a queue, of whatever function, or all of the Region if queueARN is "". A list by the
// function's name would leave out those of its aliases. at is AWS's clock.
func List(ctx context.Context, client *lambda.Client, queueARN string) (all []lambdatypes.EventSourceMappingConfiguration, at time.Time, err error) {
	in := &lambda.ListEventSourceMappingsInput{MaxItems: aws.Int32(100)}
	if queueARN != "" {
		in.EventSourceArn = &queueARN
	}
	for range mostPages {
		out, err := client.ListEventSourceMappings(ctx, in)
		if err == nil && out.EventSourceMappings == nil { // Lambda's has an empty list
			err = errors.New("lambda:ListEventSourceMappings: the answer has no list")
		}
		if err != nil {
			return nil, at, allowing(err, "lambda:ListEventSourceMappings", "*")
		}
		if at.IsZero() {
			at, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
		}
		all = append(all, out.EventSourceMappings...)
		if in.Marker = out.NextMarker; aws.ToString(in.Marker) == "" {
			return all, at, nil
		}
	}
	return nil, at, fmt.Errorf("lambda:ListEventSourceMappings: more than %d pages", mostPages)
}

// Invokes reports whether a mapping's function is the one that a name, a partial or a whole ARN means. Without a version or alias it
// means all of them. An ARN's Region and account must be the mapping's.
func Invokes(arn, function string) bool {
	name, qualifier := FunctionName(function)
	invoked, of := FunctionName(arn)
	place, _, isARN := strings.Cut(function, ":function:")
	there, _, _ := strings.Cut(arn, ":function:")
	return name == invoked && (qualifier == "" || qualifier == of) && (!isARN || place == there || strings.HasSuffix(there, ":"+place))
}

// FunctionName splits a function's name, partial or whole ARN.
func FunctionName(s string) (name, qualifier string) {
	if _, after, ok := strings.Cut(s, ":function:"); ok {
		s = after
	}
	name, qualifier, _ = strings.Cut(s, ":")
	return name, qualifier
}

// Mapping is the event source mapping of a queue, and the schedule that switches it on.
type Mapping struct {
	UUID     string
	Function string    // its ARN
	Queue    string    // its ARN
	State    string    // Lambda's: Enabled, Disabled, or one on the way
	Schedule *Schedule // nil: none
	At       time.Time // AWS's clock when the mapping was read
}

// Switch switches mappings off and on.
type Switch struct {
	Lambda    *lambda.Client
	Scheduler *scheduler.Client
}

// Look returns the mappings from queues to a function, with their schedules. Mappings of streams are none of them.
func (s *Switch) Look(ctx context.Context, function string) (found []Mapping, err error) {
	all, at, err := List(ctx, s.Lambda, "")
	if err == nil && at.IsZero() {
		err = errNoDate
	}
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		queue, err := arn.Parse(aws.ToString(c.EventSourceArn))
		if err != nil || queue.Service != "sqs" || !Invokes(aws.ToString(c.FunctionArn), function) || aws.ToString(c.State) == "Deleting" {
			continue
		}
		m, err := s.Of(ctx, c)
		if err != nil {
			return nil, err
		}
		m.At = at
		found = append(found, m)
	}
	slices.SortFunc(found, func(a, b Mapping) int { return strings.Compare(a.Queue+a.UUID, b.Queue+b.UUID) })
	return found, nil
}

// Of returns a mapping with its schedule. Without a schedule it has no time.
func (s *Switch) Of(ctx context.Context, c lambdatypes.EventSourceMappingConfiguration) (m Mapping, err error) {
	m = Mapping{UUID: aws.ToString(c.UUID), Function: aws.ToString(c.FunctionArn), Queue: aws.ToString(c.EventSourceArn), State: aws.ToString(c.State)}
	m.Schedule, m.At, err = s.schedule(ctx, m)
	return m, err
}

// Settled is Look after the mappings' changes that are under way. After 2 min it returns them as they are.
func (s *Switch) Settled(ctx context.Context, function string) ([]Mapping, error) {
	for end := time.Now().Add(patience); ; {
		found, err := s.Look(ctx, function)
		moving := slices.ContainsFunc(found, func(m Mapping) bool { return !m.On() && !m.Off() })
		if err != nil || !moving || time.Now().After(end) {
			return found, err
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return nil, err
		}
	}
}

// On and Off report whether the mapping is switched on, or off. Neither is while Lambda changes it.
func (m Mapping) On() bool  { return m.State == "Enabled" }
func (m Mapping) Off() bool { return m.State == "Disabled" }

// Ours reports whether sqsonce has switched the mapping off, and nobody has resumed it.
func (m Mapping) Ours() bool { return m.Schedule != nil && !m.Schedule.Ended }

// Resumes reports whether the mapping is off, and the schedule of a resume is about to switch it on. So it is after a resume and a pause
// at once: the resume has brought the schedule of the pause forward.
func (m Mapping) Resumes() bool {
	s := m.Schedule
	return m.Off() && s != nil && s.Ended && s.Armed && m.At.Before(s.At.Add(late))
}

// Paused reports whether the mapping is off as a pause asked for, whose time has not come.
func (m Mapping) Paused() bool { return m.Off() && m.Ours() && m.At.Before(m.Schedule.At) }

// late is how long after its time a schedule may still be at work: Scheduler's precision, and Lambda's change.
const late = 2 * time.Minute

// Is says what the mapping is, and whether that is what is asked for.
func (m Mapping) Is() (text string, ok bool) {
	s := m.Schedule
	switch {
	case !m.On() && !m.Off():
		return "on the way: " + m.State, false
	case m.On() && m.Ours() && m.At.Before(s.At) && s.Armed:
		return "not paused, as " + s.who(), false
	case m.On() && s != nil && s.Ended:
		return "open, as " + s.who(), true
	case m.On():
		return "open", true
	case s == nil:
		return "off, not by sqsonce", true
	case !s.Armed:
		return "off, and its schedule is disabled: nothing switches it on", false
	case m.Resumes():
		return "off, until " + stamp(s.At) + " at most, as " + s.who(), false
	case s.Ended:
		return "off, not by sqsonce", true
	case m.At.Before(s.At):
		return "paused until " + stamp(s.At) + " by " + s.By + ": " + s.Reason, true
	case m.At.Before(s.At.Add(late)):
		return "off, its schedule is at work since " + stamp(s.At), false
	}
	return "off after its time, which was " + stamp(s.At) + ", by " + s.By + ": " + s.Reason, false
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

var errNoDate = errors.New("the answer has no Date: without AWS's clock no mapping is switched off")

// serverTime is AWS's clock at an answer.
func serverTime(md middleware.Metadata) (time.Time, error) {
	at, ok := awsmiddleware.GetServerTime(md)
	if !ok || at.IsZero() {
		return at, errNoDate
	}
	return at, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
