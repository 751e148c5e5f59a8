//go:build unix

package sqsworker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/proof/netfault"
)

// long says that the faults take as long as in production: make soak.
var long = os.Getenv("SOAK") != ""

// addDeadLetterQueue gives the fleet's queue a redrive policy of five receives.
func (f *fleet) addDeadLetterQueue() {
	f.Helper()
	name, fifo := strings.CutSuffix(f.config.Queue[strings.LastIndexByte(f.config.Queue, '/')+1:], ".fifo")
	name += "-dlq"
	attrs := map[string]string{}
	if fifo {
		name, attrs["FifoQueue"] = name+".fifo", "true"
	}
	out, err := f.queues.CreateQueue(f.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attrs})
	if err != nil {
		f.Fatal(err)
	}
	f.dlq = *out.QueueUrl
	got, err := f.queues.GetQueueAttributes(f.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &f.dlq, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.queues.SetQueueAttributes(f.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &f.config.Queue, Attributes: map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"5"}`, got.Attributes["QueueArn"]),
	}}); err != nil {
		f.Fatal(err)
	}
}

// deadLettered returns the bodies in the dead-letter queue.
func (f *fleet) deadLettered() (bodies []string) {
	f.Helper()
	for {
		out, err := f.queues.ReceiveMessage(f.Context(), &sqs.ReceiveMessageInput{QueueUrl: &f.dlq, MaxNumberOfMessages: 10, VisibilityTimeout: 600})
		if err != nil {
			f.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return bodies
		}
		for _, m := range out.Messages {
			bodies = append(bodies, aws.ToString(m.Body))
			if _, err := f.queues.DeleteMessage(f.Context(), &sqs.DeleteMessageInput{QueueUrl: &f.dlq, ReceiptHandle: m.ReceiptHandle}); err != nil {
				f.Fatal(err)
			}
		}
	}
}

// TestProcessesWithoutTheirStore: the store is away for a while, in the middle of the work. Nothing is dead-lettered, and
// when it is back all is done.
func TestProcessesWithoutTheirStore(t *testing.T) {
	onEach(t, func(f *fleet) {
		const n = 100
		away := 4 * time.Second
		if long {
			away = 5 * time.Minute
		}
		f.addDeadLetterQueue()
		store, err := netfault.Start(strings.TrimPrefix(f.config.DynamoDB, "http://"))
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() {
			if err := store.Close(); err != nil {
				f.Error(err)
			}
		})
		f.config.DynamoDB = "http://" + store.Addr
		f.config.Take = 50 * time.Millisecond
		f.send(n)
		a, b := f.start(), f.start()
		f.waitFor(n / 4)
		store.Cut()
		time.Sleep(away)
		store.Mend()
		f.waitFor(n)
		f.wantAllDone()
		if dead := f.deadLettered(); len(dead) > 0 {
			f.Errorf("in the dead-letter queue: %q", dead)
		}
		a.stop()
		b.stop()
		for _, w := range []*worker{a, b} {
			if log := w.stderr.String(); strings.Count(log, "sqsworker: available again") > 1+int(away/time.Minute) {
				f.Errorf("an outage has more than one end in the log:\n%s", log)
			}
		}
	})
}

// TestProcessesWithARefusingDeadLetterQueue: three messages always fail, and the dead-letter queue takes none. The others are
// done, and SQS moves the three after their last receive.
func TestProcessesWithARefusingDeadLetterQueue(t *testing.T) {
	onEach(t, func(f *fleet) {
		f.addDeadLetterQueue()
		target, err := url.Parse(f.config.SQS)
		if err != nil {
			f.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Amz-Target") == "AmazonSQS.SendMessage" {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.sqs#AccessDenied", "message": "not allowed"})
				return
			}
			r.Host = target.Host
			proxy.ServeHTTP(w, r)
		}))
		f.Cleanup(front.Close)
		f.config.SQS = front.URL
		const n = 100
		f.sendTo("bad:0001", "bad:0002", "bad:0003")
		f.send(n)
		a := f.start()
		f.waitFor(n)
		f.eventually("the queue empty", func() bool { visible, hidden := f.depth(); return visible+hidden == 0 })
		var dead []string
		f.eventually("three in the dead-letter queue", func() bool { dead = append(dead, f.deadLettered()...); return len(dead) == 3 })
		for _, body := range dead {
			if !strings.HasPrefix(body, "bad") {
				f.Errorf("%s is in the dead-letter queue", body)
			}
		}
		a.stop()
	})
}

// sendTo sends bodies, on FIFO to the group before the colon.
func (f *fleet) sendTo(bodies ...string) {
	f.Helper()
	for _, body := range bodies {
		in := &sqs.SendMessageInput{QueueUrl: &f.config.Queue, MessageBody: &body}
		if strings.HasSuffix(f.config.Queue, ".fifo") {
			group, _, _ := strings.Cut(body, ":")
			in.MessageGroupId, in.MessageDeduplicationId = &group, &body
		}
		if _, err := f.queues.SendMessage(f.Context(), in); err != nil {
			f.Fatal(err)
		}
	}
}

// TestKilledHandlerStartsElsewhere: kill -9 in the middle of a handler. Its event starts elsewhere when the record's lease
// (2 s) and the visibility timeout (2 s) are over, also when the message has come back before the lease's end.
func TestKilledHandlerStartsElsewhere(t *testing.T) {
	onEach(t, func(f *fleet) {
		f.config.Take = 3 * time.Second
		f.sendTo("g0:0000")
		times := 2
		if long {
			times = 4
		}
		for kills := range times {
			a, b := f.start(), f.start()
			f.eventually("a run", func() bool { return len(f.notes()) > kills })
			runs := f.notes()
			killed := time.Now()
			for _, w := range []*worker{a, b} {
				if w.Pid == runs[len(runs)-1].pid {
					w.kill()
				}
			}
			f.eventually("another run", func() bool { return len(f.notes()) > kills+1 })
			// The bound is 6 s. A machine that is busy with other tests gets as much again; a message that bounces would be
			// hidden for longer with each receive.
			if took := time.Since(killed); took > 12*time.Second {
				f.Errorf("after kill %d the event started elsewhere after %s", kills+1, took)
			}
			for _, w := range []*worker{a, b} {
				if !w.over && kills < times-1 {
					w.kill()
				}
			}
		}
	})
}

// TestProcessWithABlockedLog: nobody reads the worker's standard error, a pipe that holds 64 KiB. The first run of each
// message fails, which is a line each. Extensions, deletes and the stop go on.
func TestProcessWithABlockedLog(t *testing.T) {
	onEach(t, func(f *fleet) {
		if strings.HasSuffix(f.config.Queue, ".fifo") || strings.Contains(f.Name(), "LocalStack") {
			return // they differ in SQS, not in this
		}
		const n = 250
		f.config.Concurrency, f.config.FailFirst = 100, true
		f.config.Take = f.config.Visibility + 500*time.Millisecond
		f.send(n)
		read, write, err := os.Pipe()
		if err != nil {
			f.Fatal(err)
		}
		defer read.Close()
		w := f.startWith(write)
		_ = write.Close() // the process has a copy
		f.waitFor(n)
		f.wantAllDone()
		w.stop()
		starts := 0
		for _, one := range f.notes() {
			if one.what == "start" {
				starts++
			}
		}
		// A lease that is lost costs another run. A busy machine may lose a few, without heartbeats each is lost.
		if starts < 2*n || starts > 2*n+n/10 {
			f.Errorf("%d runs, want %d and few more", starts, 2*n)
		}
	})
}
