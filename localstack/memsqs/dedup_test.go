package memsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// put sends body to a group with a deduplication ID, "" for none.
func (x *fixture) put(body, group, id string) (*sqs.SendMessageOutput, error) {
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body, MessageGroupId: &group}
	if id != "" {
		in.MessageDeduplicationId = &id
	}
	return x.c.SendMessage(x.Context(), in)
}

func (x *fixture) mustPut(body, group, id string) *sqs.SendMessageOutput {
	x.Helper()
	out, err := x.put(body, group, id)
	x.ok(err)
	return out
}

func TestDeduplication(t *testing.T) {
	t.Run("drops the second and returns the IDs of the first", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			first, second := x.mustPut("one", "a", "id"), x.mustPut("other body", "a", "id")
			if *first.MessageId != *second.MessageId || *first.SequenceNumber != *second.SequenceNumber {
				x.Errorf("got %s %s, want %s %s", *second.MessageId, *second.SequenceNumber, *first.MessageId, *first.SequenceNumber)
			}
			x.want("one")
		})
	})
	t.Run("five minutes from acceptance, not renewed", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.mustPut("one", "a", "id")
			time.Sleep(4 * time.Minute)
			x.mustPut("two", "a", "id")
			time.Sleep(time.Minute - 1)
			x.mustPut("three", "a", "id")
			time.Sleep(time.Nanosecond)
			x.mustPut("four", "a", "id")
			x.want("one", "four")
			x.mustPut("five", "b", "id") // the new interval has begun
			x.want()
		})
	})
	t.Run("still applies after a delete", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.mustPut("one", "a", "id")
			x.ok(x.delete(x.want("one")[0]))
			x.mustPut("one", "a", "id")
			x.want()
		})
	})
	t.Run("cleared by a purge", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.mustPut("one", "a", "id")
			_, err := x.c.PurgeQueue(x.Context(), &sqs.PurgeQueueInput{QueueUrl: &x.url})
			x.ok(err)
			x.want()
			x.mustPut("two", "a", "id")
			x.want("two")
		})
	})
	t.Run("in the queue", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			x.mustPut("one", "a", "id")
			x.mustPut("two", "b", "id")
			x.want("one")
		})
	})
	t.Run("in each group", func(t *testing.T) {
		run(t, "jobs.fifo", attrs{"DeduplicationScope": "messageGroup"}, func(x *fixture) {
			x.mustPut("one", "a", "id")
			x.mustPut("two", "b", "id")
			x.mustPut("three", "a", "id")
			x.want("one", "two")
		})
	})
	t.Run("by content", func(t *testing.T) {
		run(t, "jobs.fifo", attrs{"ContentBasedDeduplication": "true"}, func(x *fixture) {
			x.mustPut("one", "a", "")
			x.mustPut("one", "a", "")
			x.mustPut("one", "a", "explicit")
			x.mustPut("two", "a", "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed") // sha256 of "one"
			x.want("one", "one")
		})
	})
	t.Run("without an ID", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			_, err := x.put("one", "a", "")
			x.code(err, invalidValue)
		})
	})
}

func TestSequenceNumbers(t *testing.T) {
	fifo(t, func(x *fixture) {
		last := ""
		for _, b := range []string{"1", "2", "3"} {
			n := *x.mustPut(b, "a", b).SequenceNumber
			if len(n) != 20 || n <= last {
				x.Errorf("sequence number %q after %q, want 20 digits, greater", n, last)
			}
			last = n
		}
		if got := x.want("1", "2", "3")[2].Attributes["SequenceNumber"]; got != last {
			x.Errorf("received sequence number %s, want %s", got, last)
		}
	})
}
