package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/must"
)

// redriven runs f with a queue "jobs" whose messages go to "dead" after one receive.
func redriven(t *testing.T, f func(x *fixture, dead string)) {
	t.Helper()
	run(t, "dead", nil, func(x *fixture) {
		dead := x.url
		x.url = x.create("jobs", attrs{"VisibilityTimeout": "10", "RedrivePolicy": policy("dead")})
		f(x, dead)
	})
}

func arn(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }

func policy(dead string) string {
	return `{"deadLetterTargetArn":"` + arn(dead) + `","maxReceiveCount":1}`
}

func TestRedriveWakesPollOfDeadLetterQueue(t *testing.T) {
	redriven(t, func(x *fixture, dead string) {
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
	redriven(t, func(x *fixture, dead string) {
		must.Get(x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &dead, Attributes: attrs{"RedrivePolicy": policy("jobs")}}))(x)
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

func TestRedriveWithoutItsTarget(t *testing.T) {
	redriven(t, func(x *fixture, dead string) {
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &dead}))(x)
		x.send("a")
		for range 3 {
			x.want("a")
			time.Sleep(10 * time.Second)
		}
	})
}

func TestMoveTask(t *testing.T) {
	redriven(t, func(x *fixture, dead string) {
		ids := map[string]bool{}
		for _, b := range []string{"a", "b", "c"} {
			ids[*x.send(b).MessageId] = true
		}
		x.want("a", "b", "c")
		time.Sleep(10 * time.Second)
		x.want()

		task, err := x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead")), MaxNumberOfMessagesPerSecond: aws.Int32(2)})
		x.ok(err)
		is := func(status string, moved int64) {
			out := must.Get(x.c.ListMessageMoveTasks(x.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arn("dead"))}))(x)
			s := out.Results[0]
			if *s.Status != status || s.ApproximateNumberOfMessagesMoved != moved || *s.ApproximateNumberOfMessagesToMove != 3 {
				x.Errorf("got %s, %d of %d moved, want %s, %d of 3", *s.Status, s.ApproximateNumberOfMessagesMoved, *s.ApproximateNumberOfMessagesToMove, status, moved)
			}
		}
		is("RUNNING", 0) // two are moved: the figure is late
		_, err = x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("dead"))})
		x.code(err, invalidValue)
		time.Sleep(1600 * time.Millisecond)
		is("COMPLETED", 2)
		time.Sleep(time.Second)
		is("COMPLETED", 3)
		for _, m := range x.want("a", "b", "c") {
			if ids[*m.MessageId] || count(m) != 1 {
				x.Errorf("moved message has ID %s, count %d, want a new ID, count 1", *m.MessageId, count(m))
			}
		}
		_, err = x.c.CancelMessageMoveTask(x.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: task.TaskHandle})
		x.code(err, "AWS.SimpleQueueService.UnsupportedOperation")
		_, err = x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn("jobs"))})
		x.code(err, invalidValue)

		sources := must.Get(x.c.ListDeadLetterSourceQueues(x.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead}))(x)
		if len(sources.QueueUrls) != 1 || sources.QueueUrls[0] != x.url {
			x.Errorf("sources %v, want %s", sources.QueueUrls, x.url)
		}
	})
}
