package sqstest

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/suite"
)

var moveCases = []testCase{
	// API StartMessageMoveTask: without a destination "the messages will be redriven back to their respective original source
	// queues". Guide sqs-configure-dead-letter-queue-redrive: redriven messages are new ones, with a new messageID and
	// enqueueTime.
	{name: "move/back to the source", passes: 2 * time.Second, run: func(x *exam) {
		q, dlq, id := x.dead()
		x.move(dlq, nil)
		if m := x.one(q, "a"); *m.MessageId == id {
			x.fatalf("the moved message has its old ID %s", id)
		}
		x.none(dlq)
	}},
	// API StartMessageMoveTask, DestinationArn.
	{name: "move/to another queue", passes: 2 * time.Second, run: func(x *exam) {
		q, dlq, _ := x.dead()
		other := x.standard()
		x.move(dlq, ptr(x.arn(other)))
		x.one(other, "a")
		x.none(q)
	}},
	// API ListMessageMoveTasksResultEntry: TaskHandle "is only populated for tasks that are in RUNNING status". Recorded:
	// test_basic_move_task_workflow has no speed that nobody asked for.
	{name: "move/is listed", passes: 2 * time.Second, run: func(x *exam) {
		_, dlq, _ := x.dead()
		x.move(dlq, nil)
		out := suite.Get(x.c.ListMessageMoveTasks(x.ctx, &sqs.ListMessageMoveTasksInput{SourceArn: ptr(x.arn(dlq))}))
		if len(out.Results) != 1 {
			x.fatalf("%d tasks, want 1", len(out.Results))
		}
		r := out.Results[0]
		if str(r.Status) != "COMPLETED" || r.ApproximateNumberOfMessagesMoved != 1 || r.TaskHandle != nil || r.MaxNumberOfMessagesPerSecond != nil {
			x.fatalf("status %s, %d moved, handle %s, speed %v, want COMPLETED, 1 and none", str(r.Status), r.ApproximateNumberOfMessagesMoved, str(r.TaskHandle), r.MaxNumberOfMessagesPerSecond)
		}
	}},
	// Recorded: test_move_task_cancel. API ListMessageMoveTasksResultEntry, Status: CANCELLING comes before CANCELLED. The figure of the
	// messages to move is that of the start.
	{name: "move/cancelled", passes: 6 * time.Second, run: func(x *exam) {
		_, dlq, _ := x.dead()
		to := x.standard()
		x.sendAll(dlq, "b", "c", "d", "e", "f", "g", "h", "i", "j")
		task := suite.Get(x.c.StartMessageMoveTask(x.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: ptr(x.arn(dlq)), DestinationArn: ptr(x.arn(to)), MaxNumberOfMessagesPerSecond: ptr(int32(1))}))
		is := func(moved int64, statuses ...string) {
			if r := x.newestMove(dlq); !slices.Contains(statuses, str(r.Status)) || r.ApproximateNumberOfMessagesMoved != moved || *r.ApproximateNumberOfMessagesToMove != 10 {
				x.fatalf("%s, %d of %d moved, want %s, %d of 10", str(r.Status), r.ApproximateNumberOfMessagesMoved, *r.ApproximateNumberOfMessagesToMove, statuses, moved)
			}
		}
		for arrived := 0; arrived < 2; {
			arrived += len(suite.Get(x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &to.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 2})).Messages)
		}
		is(0, "RUNNING") // the figure is late
		out := suite.Get(x.c.CancelMessageMoveTask(x.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: task.TaskHandle}))
		if out.ApproximateNumberOfMessagesMoved != 0 {
			x.fatalf("cancelled after %d moved, want 0", out.ApproximateNumberOfMessagesMoved)
		}
		_, err := x.c.CancelMessageMoveTask(x.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: task.TaskHandle})
		x.fails("a second cancel", err, "UnsupportedOperation")
		x.pass(6 * time.Second)
		is(2, "CANCELLED")
		if n := x.attributes(dlq)["ApproximateNumberOfMessages"]; n != "8" {
			x.fatalf("%s messages stay, want 8", n)
		}
	}},
	// API StartMessageMoveTask, errors: ResourceNotFoundException.
	{name: "move/unknown source refused", run: func(x *exam) {
		arn := x.arn(x.standard())
		_, err := x.c.StartMessageMoveTask(x.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: ptr(arn + "-unknown")})
		x.fails("an unknown queue", err, "ResourceNotFound")
	}},
	// API CancelMessageMoveTask, errors: ResourceNotFoundException.
	{name: "move/cancel of an unknown task refused", run: func(x *exam) {
		_, err := x.c.CancelMessageMoveTask(x.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: ptr("eyJ0YXNrSWQiOiJub25lIn0=")})
		x.fails("an unknown task", err, "ResourceNotFound", invalidValue)
	}},
	// Guide sqs-configure-dead-letter-queue-redrive: a new message, so it is received maxReceiveCount times again.
	{name: "move/receive count starts anew", passes: 2 * time.Second, run: func(x *exam) {
		q, dlq, _ := x.dead()
		x.move(dlq, nil)
		x.exhaust(q, "a", 1)
		x.one(dlq, "a")
	}},
}

// dead returns a queue, its dead-letter queue, and the ID of the only message, which is in the dead-letter queue.
func (x *exam) dead() (q, dlq *queue, id string) {
	dlq = x.standard()
	q = x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	id = *x.send(q, "a").MessageId
	x.exhaust(q, "a", 1)
	return q, dlq, id
}

func (x *exam) move(dlq *queue, destination *string) {
	suite.Get(x.c.StartMessageMoveTask(x.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: ptr(x.arn(dlq)), DestinationArn: destination}))
	x.pass(2 * time.Second)
}
