package sqsworker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestFindingTheDLQ: the redrive policy has its ARN, and a message is sent to its URL.
func TestFindingTheDLQ(t *testing.T) {
	for name, tc := range map[string]struct {
		rule fault.Rule
		dead int
		log  string
	}{
		"found":         {dead: 1},
		"not allowed":   {rule: fault.Rule{Prob: 1, Do: fault.Error, Code: "AccessDenied"}, dead: 1}, // derived from the queue's own URL
		"not reachable": {rule: fault.Rule{Prob: 1, Do: fault.Error}, dead: 1, log: "URL of the dead-letter queue not read"},
		"no answer":     {rule: fault.Rule{Prob: 1, Do: fault.Delay, Delay: time.Hour}, dead: 1, log: "URL of the dead-letter queue not read"},
		"refused":       {rule: fault.Rule{Prob: 1, Do: fault.Error, Code: "InvalidParameterValue"}, dead: 1, log: "URL of the dead-letter queue not read"},
		"not there":     {rule: fault.Rule{Prob: 1, Do: fault.Error, Code: "QueueDoesNotExist"}, log: "the dead-letter queue of the redrive policy does not exist"},
	} {
		tc.rule.Op = "GetQueueUrl"
		run(t, name, setup{maxReceives: 1000, faults: []fault.Rule{tc.rule}}, func(x *fixture) {
			x.send("bad")
			j := x.start(rejectBad)
			time.Sleep(2 * time.Minute)
			j.stopClean()
			if dead, left := len(x.dead()), len(x.queued()); dead != tc.dead || left != 1-tc.dead {
				x.Errorf("%d in the dead-letter queue, %d left", dead, left)
			}
			if !x.log.has(tc.log) {
				x.Errorf("not logged: %s", tc.log)
			}
		})
	}
}

// TestUnreadableRedrivePolicy: a policy that cannot be parsed counts as a strict one.
func TestUnreadableRedrivePolicy(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		w := x.newJob(x.c, ok)
		for text, want := range map[string]queue{
			"":  {},
			"{": {maxReceives: unknownMaxReceives, guessed: true},
			`{"deadLetterTargetArn":"nowhere","maxReceiveCount":7}`:      {maxReceives: 7, target: "nowhere"},
			`{"deadLetterTargetArn":"nowhere","maxReceiveCount":"7"}`:    {maxReceives: 7, target: "nowhere"},
			`{"deadLetterTargetArn":"nowhere","maxReceiveCount":"many"}`: {maxReceives: unknownMaxReceives, guessed: true},
			`{"deadLetterTargetArn":"nowhere"}`:                          {target: "nowhere", maxReceives: unknownMaxReceives, guessed: true},
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:jobs-dlq","maxReceiveCount":"4"}`: {
				maxReceives: 4, deadLetter: x.dlq, target: "arn:aws:sqs:us-east-1:000000000000:jobs-dlq", confirmed: w.now(),
			},
		} {
			var got queue
			if w.readRedrivePolicy(x.Context(), &got, attributes{"RedrivePolicy": text}, w.log); got != want {
				t.Errorf("%s: got %+v, want %+v", text, got, want)
			}
		}
	})
}

// questionable returns the settings that the startup check of a worker logged. Each line has the same keys.
func (x *fixture) questionable(optFns ...func(*Options)) (settings []string) {
	x.Helper()
	var book logBook
	j := x.start(ok, append(optFns, func(o *Options) { o.Logger = slog.New(slog.NewJSONHandler(&book, nil)) })...)
	time.Sleep(time.Minute)
	j.stopClean()
	for lines := bufio.NewScanner(strings.NewReader(book.String())); lines.Scan(); {
		var line map[string]any
		must.Do(x, json.Unmarshal(lines.Bytes(), &line))
		if line["msg"] != "sqsworker: questionable setting" {
			continue
		}
		for _, key := range []string{keyQueue, keySetting, keyValue, keyReason} {
			if line[key] == nil || line[key] == "" {
				x.Errorf("a line without %s: %s", key, lines.Text())
			}
		}
		settings = append(settings, line[keySetting].(string))
	}
	return settings
}

func TestStartupCheck(t *testing.T) {
	const day, twoWeeks = "86400", "1209600"
	for name, tc := range map[string]struct {
		setup
		queue, dead map[string]string // attributes set after the queues were created
		opts        func(*Options)
		want        []string
	}{
		"AWS's defaults, a redrive policy": {setup: setup{maxReceives: 5}},
		"the longest retentions": {setup: setup{maxReceives: 5},
			queue: map[string]string{"MessageRetentionPeriod": twoWeeks}, dead: map[string]string{"MessageRetentionPeriod": twoWeeks}},
		"nothing on FIFO": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.MaxAttempts = 7 }},
		"AWS's defaults":  {want: []string{"queue.RedrivePolicy"}},
		"one receive":     {setup: setup{fifo: true, maxReceives: 1}, want: []string{"queue.RedrivePolicy.maxReceiveCount"}},
		"two receives":    {setup: setup{fifo: true, maxReceives: 2}, want: []string{"queue.RedrivePolicy.maxReceiveCount"}},
		"three receives":  {setup: setup{fifo: true, maxReceives: 3}},
		"retention shorter": {setup: setup{maxReceives: 5}, dead: map[string]string{"MessageRetentionPeriod": day},
			want: []string{"deadLetterQueue.MessageRetentionPeriod"}},
		"retention shorter, FIFO": {setup: setup{fifo: true, maxReceives: 5}, dead: map[string]string{"MessageRetentionPeriod": day}},
		"short visibility": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.VisibilityTimeout = 4 * time.Second },
			want: []string{"Options.VisibilityTimeout"}},
		"short poll": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.WaitTime = time.Second },
			want: []string{"Options.WaitTime"}},
		"short stop": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.StopTimeout = 19 * time.Second },
			want: []string{"Options.StopTimeout"}},
		"idle slots": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.MaxInFlight, o.Concurrency = 4, 5 },
			want: []string{"Options.MaxInFlight"}},
		"FIFO options on a standard queue": {setup: setup{maxReceives: 5},
			opts: func(o *Options) { o.MaxAttempts = 5 }, want: []string{"Options.MaxAttempts"}},
		"just enough": {setup: setup{maxReceives: 5}, opts: func(o *Options) {
			o.VisibilityTimeout, o.WaitTime, o.StopTimeout, o.MaxInFlight, o.Concurrency = 5*time.Second, 5*time.Second, 10*time.Second, 5, 5
		}},
		"dead-letter queue missing": {opts: func(o *Options) { o.DeadLetterQueue = goodURL + "-nowhere" },
			want: []string{"queue.RedrivePolicy", "Options.DeadLetterQueue"}},
		"several": {opts: func(o *Options) { o.VisibilityTimeout, o.WaitTime = time.Second, time.Second },
			want: []string{"Options.VisibilityTimeout", "Options.WaitTime", "queue.RedrivePolicy"}},
	} {
		run(t, name, tc.setup, func(x *fixture) {
			for url, attrs := range map[string]map[string]string{x.url: tc.queue, x.dlq: tc.dead} {
				if attrs == nil {
					continue
				}
				must.Get(x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attrs}))(x)
			}
			var fns []func(*Options)
			if tc.opts != nil {
				fns = append(fns, tc.opts)
			}
			if got := x.questionable(fns...); !slices.Equal(got, tc.want) {
				x.Errorf("questionable: got %q, want %q", got, tc.want)
			}
		})
	}
}

// Middleware learns how long a message of the queue can come back, from what the worker reads of its queues.
func TestHandlersKnowTheLongestReturn(t *testing.T) {
	const day = 24 * time.Hour
	denied := func(nth int) []fault.Rule {
		return []fault.Rule{{Op: "GetQueueAttributes", Nth: nth, Times: 1000, Do: fault.Error, Code: "AccessDenied"}}
	}
	for name, tc := range map[string]struct {
		setup
		want time.Duration
	}{
		"no dead-letter queue":       {want: 4*day + 12*time.Hour},
		"standard":                   {setup: setup{maxReceives: 5}, want: (14+4)*day + 12*time.Hour},
		"FIFO":                       {setup: setup{fifo: true, maxReceives: 5}, want: (4+14+4)*day + 12*time.Hour},
		"dead-letter queue not read": {setup: setup{maxReceives: 5, faults: denied(2)}, want: (4+4)*day + 12*time.Hour},
		"queue not read":             {setup: setup{maxReceives: 5, faults: denied(1)}},
	} {
		run(t, name, tc.setup, func(x *fixture) {
			must.Get(x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{
				QueueUrl: &x.dlq, Attributes: map[string]string{"MessageRetentionPeriod": "1209600"},
			}))(x)
			x.send("a:1")
			got := make(chan time.Duration, 1)
			j := x.start(func(ctx context.Context, _ *sqsonce.Message) error { got <- settle.LongestReturn(ctx); return nil })
			if d := <-got; d != tc.want {
				x.Errorf("got %s, want %s", d, tc.want)
			}
			j.stopClean()
		})
	}
}

// TestKindIsNotWhatTheURLSays: behind a proxy with another name the groups of a FIFO queue would run in parallel.
func TestKindIsNotWhatTheURLSays(t *testing.T) {
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		w := x.newJob(x.c, ok)
		w.fifo = false
		must.Get(w.readQueue(x.Context()))(t)
		synctest.Wait() // for the log
		if !x.log.has(fmt.Sprintf("%s=queue.FifoQueue", keySetting)) {
			t.Error("nothing logged")
		}
	})
}

func TestQueueMissing(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.url += "-not"
		j := x.start(ok)
		if err := j.wait(); errorCode(err) != "QueueDoesNotExist" && errorCode(err) != "NonExistentQueue" {
			t.Errorf("Run: got %v, want that the queue does not exist", err)
		} else if about := "queue jobs-not does not exist in account 000000000000, Region us-east-1"; !strings.Contains(err.Error(), about) || !strings.Contains(err.Error(), x.url) {
			t.Errorf("%v does not say %q and its URL", err, about)
		}
		if n := x.calls(opReceive); n > 0 {
			t.Errorf("%d receives, want none", n)
		}
	})
}

// TestQueueARNOfTheOptions: where the attributes are denied, and the URL is a proxy's, a message gets the ARN of the options.
func TestQueueARNOfTheOptions(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:sqs:us-east-1:000000000000:jobs"
	bubble(t, setup{faults: []fault.Rule{{Op: "GetQueueAttributes", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}}, func(x *fixture) {
		x.url = x.proxied()
		x.send("a")
		var got atomic.Value
		j := x.start(func(_ context.Context, m *sqsonce.Message) error { got.Store(m.QueueARN); return nil }, func(o *Options) { o.QueueARN = arn })
		time.Sleep(2 * time.Minute)
		j.stopClean()
		if got.Load() != arn {
			t.Errorf("the message has %v, want %s", got.Load(), arn)
		}
	})
}
