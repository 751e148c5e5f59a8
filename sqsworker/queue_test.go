package sqsworker

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestFindingTheDLQ: the redrive policy has its ARN, and a message is sent to its URL.
func TestFindingTheDLQ(t *testing.T) {
	for name, tc := range map[string]struct {
		rule fault.Rule
		dead int
		log  string
	}{
		"asked for":     {dead: 1},
		"not allowed":   {rule: fault.Rule{Prob: 1, Do: fault.Error, Code: "AccessDenied"}, dead: 1}, // derived from the queue's own
		"not reachable": {rule: fault.Rule{Nth: 1, Times: 5, Do: fault.Error}, dead: 1, log: "reading the queue's attributes"},
		"not there":     {rule: fault.Rule{Prob: 1, Do: fault.Error, Code: "QueueDoesNotExist"}, log: "the dead-letter queue of the redrive policy does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.rule.Op = "GetQueueUrl"
			bubble(t, setup{maxReceives: 1000, faults: []fault.Rule{tc.rule}}, func(x *fixture) {
				x.send("bad")
				j := x.start(rejectBad)
				time.Sleep(2 * time.Minute)
				j.stopClean()
				if dead, left := len(x.dead()), len(x.queued()); dead != tc.dead || left != 1-tc.dead {
					t.Errorf("%d in the dead-letter queue, %d left", dead, left)
				}
				if !x.log.has(tc.log) {
					t.Errorf("not logged: %s", tc.log)
				}
			})
		})
	}
}

// TestRedrivePolicyNotUnderstood: a policy that cannot be read is a policy all the same, and taken for a strict one.
func TestRedrivePolicyNotUnderstood(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		w, err := New(x.c, x.url, ok)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]queue{
			"":  {},
			"{": {maxReceives: unknownMaxReceives},
			`{"deadLetterTargetArn":"nowhere","maxReceiveCount":7}`:                                       {maxReceives: 7},
			`{"deadLetterTargetArn":"nowhere","maxReceiveCount":"7"}`:                                     {maxReceives: 7},
			`{"deadLetterTargetArn":"nowhere","maxReceiveCount":"many"}`:                                  {maxReceives: unknownMaxReceives},
			`{"deadLetterTargetArn":"nowhere"}`:                                                           {maxReceives: unknownMaxReceives},
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:jobs-dlq","maxReceiveCount":"4"}`: {maxReceives: 4, deadLetter: x.dlq},
		} {
			var got queue
			if err := w.readRedrive(x.Context(), &got, attributes{"RedrivePolicy": text}); err != nil || got != want {
				t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
			}
		}
	})
}

// TestSendNotAllowed: without sqs:SendMessage on the dead-letter queue rejected messages come back; others are handled.
func TestSendNotAllowed(t *testing.T) {
	bubble(t, setup{maxReceives: 1000}, func(x *fixture) {
		x.send("bad", "good")
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opSend, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
		j := x.start(rejectBad)
		time.Sleep(5 * time.Minute)
		j.stopClean()
		if left := x.queued(); len(left) != 1 || left[0].Body != "bad" || left[0].ReceiveCount < 2 {
			t.Errorf("left: %+v, want the rejected one, received again and again", left)
		}
		if !x.log.has("not sent to the dead-letter queue") {
			t.Error("nothing logged")
		}
	})
}

// TestFIFOWithAStandardDLQ: SQS itself refuses a redrive policy of two kinds; so does New for a queue that is given.
func TestFIFOWithAStandardDLQ(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		standard, err := x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: aws.String("other")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(x.c, x.url, ok, func(o *Options) { o.DeadLetterQueue = *standard.QueueUrl })
		if got := fields(err); len(got) != 1 || got[0] != "Options.DeadLetterQueue" {
			t.Errorf("got %v", err)
		}
	})
}
