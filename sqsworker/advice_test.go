package sqsworker

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// advice returns the settings that a started worker called unwise. Each line has the same keys.
func (x *fixture) advice(optFns ...func(*Options)) (settings []string) {
	x.Helper()
	var book logBook
	j := x.start(ok, append(optFns, func(o *Options) { o.Logger = slog.New(slog.NewJSONHandler(&book, nil)) })...)
	time.Sleep(time.Minute)
	j.stopClean()
	for lines := bufio.NewScanner(strings.NewReader(book.text.String())); lines.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			x.Fatal(err)
		}
		if line["msg"] != "sqsworker: unwise setting" {
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

func TestAdvice(t *testing.T) {
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
		"nothing on FIFO": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.FIFORetries = 7 }},
		"AWS's defaults":  {want: []string{"queue.RedrivePolicy"}},
		"one receive":     {setup: setup{fifo: true, maxReceives: 1}, want: []string{"queue.RedrivePolicy.maxReceiveCount"}},
		"two receives":    {setup: setup{fifo: true, maxReceives: 2}, want: []string{"queue.RedrivePolicy.maxReceiveCount"}},
		"three receives":  {setup: setup{fifo: true, maxReceives: 3}},
		"retention shorter": {setup: setup{maxReceives: 5}, dead: map[string]string{"MessageRetentionPeriod": day},
			want: []string{"deadLetterQueue.MessageRetentionPeriod"}},
		"retention shorter, FIFO": {setup: setup{fifo: true, maxReceives: 5}, dead: map[string]string{"MessageRetentionPeriod": day}},
		"short visibility": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.Visibility = 4 * time.Second },
			want: []string{"Options.Visibility"}},
		"timeout beyond the extension": {setup: setup{fifo: true, maxReceives: 5},
			opts: func(o *Options) { o.HandlerTimeout, o.MaxExtension = time.Hour, time.Minute }, want: []string{"Options.HandlerTimeout"}},
		"short poll": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.Wait = time.Second },
			want: []string{"Options.Wait"}},
		"short stop": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.StopTimeout = 24 * time.Second },
			want: []string{"Options.StopTimeout"}},
		"idle slots": {setup: setup{fifo: true, maxReceives: 5}, opts: func(o *Options) { o.InFlight, o.Concurrency = 4, 5 },
			want: []string{"Options.InFlight"}},
		"FIFO options on a standard queue": {setup: setup{maxReceives: 5},
			opts: func(o *Options) { o.FIFORetries = 5 }, want: []string{"Options.FIFORetries"}},
		"several": {opts: func(o *Options) { o.Visibility, o.Wait = time.Second, time.Second },
			want: []string{"Options.Visibility", "Options.Wait", "queue.RedrivePolicy"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, tc.setup, func(x *fixture) {
				for url, attrs := range map[string]map[string]string{x.url: tc.queue, x.dlq: tc.dead} {
					if attrs == nil {
						continue
					}
					if _, err := x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attrs}); err != nil {
						t.Fatal(err)
					}
				}
				var fns []func(*Options)
				if tc.opts != nil {
					fns = append(fns, tc.opts)
				}
				if got := x.advice(fns...); !slices.Equal(got, tc.want) {
					t.Errorf("unwise: got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestAdviceStopsNothing: the dead-letter queue's attributes are worth a line, not a worker.
func TestAdviceStopsNothing(t *testing.T) {
	for _, code := range []string{"AccessDenied", "InternalError", "QueueDoesNotExist"} {
		t.Run(code, func(t *testing.T) {
			rule := fault.Rule{Op: "GetQueueAttributes", Nth: 2, Times: 1000, Do: fault.Error, Code: code}
			bubble(t, setup{maxReceives: 5, faults: []fault.Rule{rule}}, func(x *fixture) {
				x.send("a")
				j := x.start(ok)
				time.Sleep(time.Second)
				x.wantEmpty()
				j.stopClean()
				if n := x.calls("GetQueueAttributes"); n != 2 {
					t.Errorf("%d reads of attributes, want one of each queue", n)
				}
			})
		})
	}
}

func TestDeadLetterQueueMissing(t *testing.T) {
	bubble(t, setup{fifo: false}, func(x *fixture) {
		got := x.advice(func(o *Options) { o.DeadLetterQueue = x.url + "-nowhere" })
		if want := []string{"queue.RedrivePolicy", "Options.DeadLetterQueue"}; !slices.Equal(got, want) {
			t.Errorf("unwise: got %q, want %q", got, want)
		}
	})
}

// TestKindIsNotWhatTheURLSays: behind a proxy's name groups would silently run in parallel.
func TestKindIsNotWhatTheURLSays(t *testing.T) {
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		w, err := New(x.c, x.url, ok, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(x.log, nil)) })
		if err != nil {
			t.Fatal(err)
		}
		w.fifo = false
		if _, err := w.readQueue(x.Context()); err != nil {
			t.Fatal(err)
		}
		if !x.log.has(fmt.Sprintf("%s=queue.FifoQueue", keySetting)) {
			t.Error("nothing logged")
		}
	})
}
