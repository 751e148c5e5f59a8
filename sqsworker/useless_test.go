package sqsworker

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestUselessReceives: receives that are answered at once without a message are made once a second, and logged every ten
// minutes. They delay no stop.
func TestUselessReceives(t *testing.T) {
	for name, answer := range map[string]string{
		"no messages": `{}`, "an empty list": `{"Messages":[]}`, "null": `{"Messages":[null]}`, "an empty body": ``,
		"no ID": `{"Messages":[{"Body":"b","ReceiptHandle":"h"}]}`, "no handle": `{"Messages":[{"Body":"b","MessageId":"i"}]}`,
	} {
		run(t, name, setup{}, func(x *fixture) {
			x.send("a")
			c := x.tapped(func(text []byte) []byte {
				if bytes.Contains(text, []byte(`"Messages"`)) {
					return []byte(answer)
				}
				return text
			})
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opReceive, Prob: 1, Do: fault.ExpireEarly}}})
			j := x.startWith(c, func(context.Context, *sqsonce.Message) error {
				x.Error("a handler was started")
				return nil
			}, func(o *Options) { o.MaxReceivers = 5 })
			time.Sleep(15 * time.Minute)
			if n := x.calls(opReceive); n < 800 || n > 1000 {
				x.Errorf("%d receives in 15 min, want about one a second", n)
			}
			if n := x.log.count("receive answered without use"); n != 2 {
				x.Errorf("%d lines, want 2", n)
			}
			began := time.Now()
			j.stopClean()
			if took := time.Since(began); took > time.Second {
				x.Errorf("the stop took %s", took)
			}
		})
	}
}

// TestFullReceivesDoNotPause: one receiver comes back empty each time, the others bring messages without a pause.
func TestFullReceivesDoNotPause(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(2000)
		var n atomic.Int64
		c := receiveFunc{x.c, func(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
			if n.Add(1)%5 == 0 {
				return &sqs.ReceiveMessageOutput{}, nil
			}
			return x.c.ReceiveMessage(ctx, in, o...)
		}}
		var r runs
		began := time.Now()
		j := x.startWith(c, r.take(0), func(o *Options) { o.Concurrency = 100 })
		for len(x.queued()) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("2,000 messages took %s", took)
		}
		j.stopClean()
	})
}
