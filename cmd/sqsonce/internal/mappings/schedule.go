package mappings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

const (
	// Least is the shortest time from a write of a schedule until it fires.
	Least = 10 * time.Minute

	version         = 1
	mostDescription = 512 // characters
	atForm          = "at(2006-01-02T15:04:05)"
	aDay            = 24 * 60 * 60
	mostRetries     = 185 // Scheduler's own defaults, with aDay
)

// Schedule switches a mapping on, once.
type Schedule struct {
	ID     string    // of the pause or the resume that wrote it
	By     string    // who did that
	Reason string    // and why
	Ended  bool      // it was a resume
	At     time.Time // when it fires, in AWS's clock
	Role   string    // the ARN of the role by which it does
	Armed  bool      // it is not disabled
}

var (
	// ErrChanged says that another operator was first.
	ErrChanged = errors.New("another operator has changed it meanwhile: look again")
	// ErrForeign says that a schedule was not written by this version of sqsonce.
	ErrForeign = errors.New("the schedule is not one of this version of sqsonce")
	// ErrLong says that the reason and the operator's name are too long for a schedule.
	ErrLong = errors.New("the reason and the name of who gives it are too long for the description of a schedule")
)

// description is what a schedule says of itself.
type description struct {
	Version int    `json:"v"`
	ID      string `json:"id"`
	By      string `json:"by"`
	Reason  string `json:"reason"`
	Ended   bool   `json:"ended,omitempty"`
}

func (s *Schedule) describe() (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(description{version, s.ID, s.By, s.Reason, s.Ended}); err != nil {
		return "", err
	}
	text := string(bytes.TrimSpace(b.Bytes()))
	if utf8.RuneCountInString(text) > mostDescription {
		return "", ErrLong
	}
	return text, nil
}

// Check says whether the schedule can be written.
func (s *Schedule) Check() error {
	_, err := s.describe()
	return err
}

func (s *Schedule) who() string { return s.By + " asked for: " + s.Reason }

// Name is that of the mapping's schedule, in the group default.
func (m Mapping) Name() string { return "sqsonce-" + m.UUID }

// target is what the schedule calls. A universal target has the parameters as the SDK for Java names them.
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
func (m Mapping) target() (arn, input string) {
	text, err := json.Marshal(struct {
		Uuid    string
		Enabled bool
	}{m.UUID, true})
	if err != nil {
		panic(err) // a string and a bool
	}
	return "arn:" + m.arn().Partition + ":scheduler:::aws-sdk:lambda:updateEventSourceMapping", string(text)
}

// arn is of the mapping's function: the zero ARN if that is none.
func (m Mapping) arn() arn.ARN {
	a, _ := arn.Parse(m.Function)
	return a
}

// ARN is that of the mapping.
func (m Mapping) ARN() string {
	a := m.arn()
	a.Resource = "event-source-mapping:" + m.UUID
	return a.String()
}

func (m Mapping) scheduleARN() string {
	a := m.arn()
	a.Service, a.Resource = "scheduler", "schedule/default/"+m.Name()
	return a.String()
}

// schedule reads the schedule of a mapping, or nil where there is none. at is AWS's clock.
func (s *Switch) schedule(ctx context.Context, m Mapping) (found *Schedule, at time.Time, err error) {
	out, err := s.Scheduler.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: aws.String(m.Name())})
	if _, missing := errors.AsType[*schedulertypes.ResourceNotFoundException](err); missing {
		return nil, at, nil
	}
	if err != nil {
		return nil, at, allowing(err, "scheduler:GetSchedule", m.scheduleARN())
	}
	if at, err = serverTime(out.ResultMetadata); err != nil {
		return nil, at, err
	}
	foreign := func(what string) (*Schedule, time.Time, error) {
		return nil, at, fmt.Errorf("%w: %s: %s", ErrForeign, m.Name(), what)
	}
	var d description
	if err := json.Unmarshal([]byte(aws.ToString(out.Description)), &d); err != nil || d.Version != version || d.ID == "" {
		return foreign("its description")
	}
	fires, err := time.Parse(atForm, aws.ToString(out.ScheduleExpression))
	if zone := aws.ToString(out.ScheduleExpressionTimezone); err != nil || zone != "" && zone != "UTC" {
		return foreign("its time")
	}
	target, input := m.target()
	if out.Target == nil || aws.ToString(out.Target.Arn) != target || aws.ToString(out.Target.Input) != input {
		return foreign("its target")
	}
	return &Schedule{
		ID: d.ID, By: d.By, Reason: d.Reason, Ended: d.Ended, At: fires, Role: aws.ToString(out.Target.RoleArn),
		Armed: out.State == schedulertypes.ScheduleStateEnabled,
	}, at, nil
}

// same returns AWS's clock if the schedule of a mapping is the one that was seen, and ErrChanged otherwise.
func (s *Switch) same(ctx context.Context, m Mapping) (now time.Time, err error) {
	found, now, err := s.schedule(ctx, m)
	if err == nil && (found == nil || *found != *m.Schedule) {
		err = ErrChanged
	}
	return now, err
}

// Write makes the schedule of a mapping, or replaces the one that was seen. It fires after d, and after Least if that is longer.
func (s *Switch) Write(ctx context.Context, m Mapping, want Schedule, d time.Duration) error {
	text, err := want.describe()
	if err != nil {
		return err
	}
	clock := s.now
	if m.Schedule != nil {
		clock = s.same
	}
	now, err := clock(ctx, m)
	if err != nil {
		return err
	}
	at := now.Add(max(d, Least)).Truncate(time.Second).Add(time.Second)
	target, input := m.target()
	to := &schedulertypes.Target{
		Arn: &target, Input: &input, RoleArn: &want.Role,
		RetryPolicy: &schedulertypes.RetryPolicy{MaximumEventAgeInSeconds: aws.Int32(aDay), MaximumRetryAttempts: aws.Int32(mostRetries)},
	}
	expression, window := at.UTC().Format(atForm), &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff}
	// A schedule that has fired stays: it says who switched the mapping off, where its role could not switch it on.
	const stays = schedulertypes.ActionAfterCompletionNone
	if m.Schedule == nil {
		_, err = s.Scheduler.CreateSchedule(ctx, &scheduler.CreateScheduleInput{
			Name: aws.String(m.Name()), Description: &text, ScheduleExpression: &expression, ScheduleExpressionTimezone: aws.String("UTC"),
			FlexibleTimeWindow: window, ActionAfterCompletion: stays, Target: to, State: schedulertypes.ScheduleStateEnabled,
		})
		if _, exists := errors.AsType[*schedulertypes.ConflictException](err); exists {
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
		return s.refused(err, "scheduler:CreateSchedule", m, want.Role)
	}
	_, err = s.Scheduler.UpdateSchedule(ctx, &scheduler.UpdateScheduleInput{
		Name: aws.String(m.Name()), Description: &text, ScheduleExpression: &expression, ScheduleExpressionTimezone: aws.String("UTC"),
		FlexibleTimeWindow: window, ActionAfterCompletion: stays, Target: to, State: schedulertypes.ScheduleStateEnabled,
	})
	return s.refused(err, "scheduler:UpdateSchedule", m, want.Role)
}
