package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/queues"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/host"
)

// checkLoss refuses a pause in which SQS may delete messages.
func (a *app) checkLoss(ctx context.Context, of, queue string, f controlFlags) error {
	end := time.Now().Add(time.Duration(f.until))
	loss, text, err := a.firstLoss(ctx, queue, end)
	switch {
	case err != nil && f.lose:
		a.note("it is not known whether SQS deletes messages before the pause ends: %s", err.Error())
	case err != nil:
		return fmt.Errorf("pause %s: it is not known whether SQS deletes messages before the pause ends: look, then --yes-lose: %w", of, err)
	case end.Before(loss):
		a.note("%s", text)
	case f.lose:
		a.note("%s. SQS DELETES MESSAGES BEFORE THE PAUSE ENDS", text)
	default:
		return fail(exitRefused, "pause %s: %s, before the pause ends: --yes-lose loses it and those behind it", of, text)
	}
	return nil
}

// firstLoss is when SQS deletes the queue's oldest message, or one that is sent now. It is an error that this is after end, if older
// messages may be in the queue.
func (a *app) firstLoss(ctx context.Context, queue string, end time.Time) (at time.Time, text string, err error) {
	unknown := func(format string, args ...any) (time.Time, string, error) {
		return time.Time{}, "", fail(exitRefused, format, args...)
	}
	if queue == "" {
		return unknown("no --queue is set")
	}
	s, err := a.connect(ctx)
	if err != nil {
		return at, "", err
	}
	url, err := s.queueURL(ctx, queue)
	if err != nil {
		return at, "", err
	}
	counts, _, err := queues.Read(ctx, s.sqs, url)
	if err != nil {
		return at, "", err
	}
	name, oldest := host.QueueName(url), time.Duration(0)
	if counts.Total() > 0 {
		ages, err := map[string]queues.Age{}, error(nil)
		if s.cloudwatch != nil {
			ages, err = queues.Ages(ctx, s.cloudwatch, []string{name})
		}
		age, known := ages[name]
		switch {
		case err != nil:
			return unknown("the age of the oldest message in %s: %s", name, reason(err))
		case !known:
			return unknown("the age of the oldest message in %s: CloudWatch has no value of the last %s", name, shown.Brief(queues.AgeWindow, false))
		}
		oldest = age.Age + time.Since(age.At)
	}
	at = time.Now().Add(counts.Retention - oldest)
	if !strings.HasSuffix(name, ".fifo") && counts.Visible+counts.InFlight > 0 && end.Before(at) {
		return unknown("the oldest message in %s is %s old, but CloudWatch leaves out those that were received three times", name, shown.Brief(oldest, false))
	}
	return at, fmt.Sprintf("%d messages visible in %s, the oldest %s old: SQS deletes it at %s", counts.Visible, name, shown.Brief(oldest, false), at.UTC().Format("2006-01-02 15:04 UTC")), nil
}
