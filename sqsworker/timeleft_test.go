package sqsworker

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
)

// TestShortRetention: with a retention of 10 min or an hour nothing that a worker has disappears, whatever handlers return: it is in the
// dead-letter queue with the reason. Where there is none a line says so.
func TestShortRetention(t *testing.T) {
	t.Parallel()
	works := func(context.Context) error { return nil }
	down := func(context.Context) error { return errRefused }
	for name, c := range map[string]struct {
		err         error
		maxReceives int
	}{
		"fails":       {errTest, 100},
		"retry after": {sqsonce.RetryAfter(3*time.Hour, errTest), 100},
		"aside":       {sqsonce.UnavailableUntil(errRefused, works), 100},
		"claims":      {sqsonce.Unavailable(errRefused), 2}, // with more receives left they are given back for other workers
		"an outage":   {sqsonce.UnavailableUntil(errRefused, down), 2},
		"nowhere":     {sqsonce.RetryAfter(3*time.Hour, errTest), 0},
	} {
		for _, retention := range []time.Duration{10 * time.Minute, time.Hour} {
			for _, fifo := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/fifo=%t", name, retention, fifo), func(t *testing.T) {
					t.Parallel()
					bubble(t, setup{fifo: fifo, maxReceives: c.maxReceives}, func(x *fixture) { x.shortRetention(retention, c.err, c.maxReceives == 0) })
				})
			}
		}
	}
}

func (x *fixture) shortRetention(retention time.Duration, fails error, nowhere bool) {
	_, err := x.c.SetQueueAttributes(context.Background(), &sqs.SetQueueAttributesInput{
		QueueUrl: &x.url, Attributes: map[string]string{"MessageRetentionPeriod": strconv.Itoa(int(retention / time.Second))},
	})
	if err != nil {
		x.Fatal(err)
	}
	const messages = 8 // fewer than fill what is held
	for n := range messages {
		x.send(fmt.Sprintf("g%d:%d", n%3, n))
	}
	j := x.start(func(context.Context, *sqsonce.Message) error { return fails })
	time.Sleep(2 * retention)
	j.stopClean()
	if questionable := x.log.has("setting=queue.MessageRetentionPeriod"); questionable != (retention < time.Hour) {
		x.Errorf("a retention of %s is questionable: %t", retention, questionable)
	}
	if said := x.log.has("SQS deletes the message soon"); said != nowhere {
		x.Errorf("a line about messages that SQS deletes: %t, want %t", said, nowhere)
	}
	if nowhere {
		return
	}
	dead := x.dead()
	if len(dead) != messages || len(x.queued()) > 0 {
		x.Errorf("%d of %d in the dead-letter queue, %d left", len(dead), messages, len(x.queued()))
	}
	for _, m := range dead {
		if reason := m.Attributes[sqsonce.AttrRejectReason]; !strings.Contains(reason, "retention ends") && !strings.Contains(reason, errTest.Error()) {
			x.Errorf("%s has the reason %q", m.Body, reason)
		}
	}
}
