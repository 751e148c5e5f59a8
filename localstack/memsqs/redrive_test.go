package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// redriven runs f with a queue "jobs" whose messages go to "dead" after limit receives.
func redriven(t *testing.T, suffix, limit string, f func(x *fixture, dead string)) {
	t.Helper()
	run(t, "dead"+suffix, attrsFor(suffix), func(x *fixture) {
		dead := x.url
		x.url = x.create("jobs"+suffix, attrs{"VisibilityTimeout": "10", "RedrivePolicy": policy("dead"+suffix, limit)})
		f(x, dead)
	})
}

func attrsFor(suffix string) attrs {
	if suffix == ".fifo" {
		return attrs{"FifoQueue": "true"}
	}
	return nil
}

func arn(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }

func policy(dead, limit string) string {
	return `{"deadLetterTargetArn":"` + arn(dead) + `","maxReceiveCount":` + limit + `}`
}

func TestRedrive(t *testing.T) {
	for _, limit := range []string{`2`, `"2"`} {
		t.Run("after "+limit, func(t *testing.T) {
			redriven(t, "", limit, func(x *fixture, dead string) {
				x.send("a")
				first := x.want("a")[0]
				time.Sleep(10 * time.Second)
				x.want("a")
				time.Sleep(10 * time.Second)
				x.want()
				x.url = dead
				m := x.want("a")[0]
				if *m.MessageId != *first.MessageId || m.Attributes["SentTimestamp"] != first.Attributes["SentTimestamp"] {
					x.Errorf("got ID %s sent %s, want ID %s sent %s", *m.MessageId, m.Attributes["SentTimestamp"], *first.MessageId, first.Attributes["SentTimestamp"])
				}
				if got, want := m.Attributes["DeadLetterQueueSourceArn"], arn("jobs"); got != want {
					x.Errorf("DeadLetterQueueSourceArn %q, want %q", got, want)
				}
				if count(m) != 3 { // the receives of all queues
					x.Errorf("receive count %d, want 3", count(m))
				}
				if _, ok := first.Attributes["DeadLetterQueueSourceArn"]; ok {
					x.Error("DeadLetterQueueSourceArn on a message that was not moved")
				}
			})
		})
	}
}

func TestRedriveOfFIFO(t *testing.T) {
	redriven(t, ".fifo", "1", func(x *fixture, dead string) {
		x.mustPut("a1", "a", "id-1")
		x.mustPut("a2", "a", "id-2")
		first := x.receive(1)[0]
		x.same([]types.Message{first}, "a1")
		time.Sleep(10 * time.Second)
		x.want("a2") // the next message of the group is receivable
		x.url = dead
		m := x.want("a1")[0]
		if m.Attributes["MessageGroupId"] != "a" || m.Attributes["MessageDeduplicationId"] != *first.MessageId {
			x.Errorf("got group %q, dedup ID %q, want %q, %q", m.Attributes["MessageGroupId"], m.Attributes["MessageDeduplicationId"], "a", *first.MessageId)
		}
	})
}

func TestRedriveWakesPollOfDeadLetterQueue(t *testing.T) {
	redriven(t, "", "1", func(x *fixture, dead string) {
		x.send("a")
		x.want("a")
		waiting := *x
		waiting.url = dead
		got := make(chan []types.Message)
		start := time.Now()
		go func() { got <- waiting.receive(1, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 }) }()
		x.after(12*time.Second, func() { x.want() })
		x.same(<-got, "a")
		if d := time.Since(start); d != 12*time.Second {
			x.Errorf("the poll woke after %v, want 12 s", d)
		}
	})
}

func TestRedriveInCirclesEnds(t *testing.T) {
	redriven(t, "", "1", func(x *fixture, dead string) {
		_, err := x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &dead, Attributes: attrs{"RedrivePolicy": policy("jobs", "1")}})
		x.ok(err)
		x.send("a")
		x.want("a")
		time.Sleep(10 * time.Second)
		x.want()
		jobs := x.url
		x.url = dead
		x.want("a")
		time.Sleep(30 * time.Second)
		x.want()
		x.url = jobs
		x.want("a")
	})
}

func TestRedriveNeedsItsTarget(t *testing.T) {
	standard(t, func(x *fixture) {
		x.create("some.fifo", nil)
		for _, p := range []string{policy("nowhere", "1"), policy("some.fifo", "1"), policy("jobs", "0"), policy("jobs", "1001"), `{"maxReceiveCount":1}`, `{"deadLetterTargetArn":"` + arn("jobs") + `"}`, `[`} {
			_, err := x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: aws.String("new"), Attributes: attrs{"RedrivePolicy": p}})
			x.code(err, invalidValue)
		}
	})
	t.Run("deleted later", func(t *testing.T) {
		redriven(t, "", "1", func(x *fixture, dead string) {
			_, err := x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &dead})
			x.ok(err)
			x.send("a")
			for range 3 {
				x.want("a")
				time.Sleep(10 * time.Second)
			}
		})
	})
}

func TestRetentionInDeadLetterQueue(t *testing.T) {
	for suffix, want := range map[string]int{"": 0, ".fifo": 1} {
		t.Run("queue"+suffix, func(t *testing.T) {
			redriven(t, suffix, "1", func(x *fixture, dead string) {
				_, err := x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &dead, Attributes: attrs{"MessageRetentionPeriod": "3600"}})
				x.ok(err)
				if suffix == "" {
					x.send("a")
				} else {
					x.send("a", "a")
				}
				x.want("a")
				time.Sleep(50 * time.Minute)
				x.want()
				time.Sleep(10 * time.Minute) // retention counts from the sending in a standard queue, from the move in a FIFO queue
				if got := x.srv.Messages(dead); len(got) != want {
					x.Errorf("dead-letter queue holds %d messages, want %d", len(got), want)
				}
			})
		})
	}
}

func TestMoveTask(t *testing.T) {
	redriven(t, "", "1", func(x *fixture, dead string) {
		ids := map[string]bool{}
		for _, b := range []string{"a", "b", "c"} {
			ids[*x.send(b).MessageId] = true
		}
		x.want("a", "b", "c")
		time.Sleep(10 * time.Second)
		x.want()

		task, err := x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead")), MaxNumberOfMessagesPerSecond: aws.Int32(2)})
		x.ok(err)
		status := func() types.ListMessageMoveTasksResultEntry {
			out, err := x.c.ListMessageMoveTasks(x.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arn("dead"))})
			x.ok(err)
			return out.Results[0]
		}
		if s := status(); *s.Status != "RUNNING" || s.ApproximateNumberOfMessagesMoved != 2 || *s.ApproximateNumberOfMessagesToMove != 3 {
			x.Errorf("got %s, %d of %d moved, want RUNNING, 2 of 3", *s.Status, s.ApproximateNumberOfMessagesMoved, *s.ApproximateNumberOfMessagesToMove)
		}
		_, err = x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead"))})
		x.code(err, invalidValue)
		time.Sleep(2 * time.Second)
		if s := status(); *s.Status != "COMPLETED" {
			x.Errorf("got %s, want COMPLETED", *s.Status)
		}
		for _, m := range x.want("a", "b", "c") {
			if ids[*m.MessageId] || count(m) != 1 {
				x.Errorf("moved message has ID %s, count %d, want a new ID, count 1", *m.MessageId, count(m))
			}
		}
		_, err = x.c.CancelMessageMoveTask(x.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: task.TaskHandle})
		x.code(err, "AWS.SimpleQueueService.UnsupportedOperation")
		_, err = x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("jobs"))})
		x.code(err, invalidValue)

		sources, err := x.c.ListDeadLetterSourceQueues(x.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead})
		x.ok(err)
		if len(sources.QueueUrls) != 1 || sources.QueueUrls[0] != x.url {
			x.Errorf("sources %v, want %s", sources.QueueUrls, x.url)
		}
	})
}
