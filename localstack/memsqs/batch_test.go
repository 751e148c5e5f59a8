package memsqs_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func entries(bodies ...string) []types.SendMessageBatchRequestEntry {
	var out []types.SendMessageBatchRequestEntry
	for i, b := range bodies {
		out = append(out, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(b)})
	}
	return out
}

func (x *fixture) sendBatch(e []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return x.c.SendMessageBatch(x.Context(), &sqs.SendMessageBatchInput{QueueUrl: &x.url, Entries: e})
}

// failures are a batch's failed entries without their messages.
func (x *fixture) failures(got []types.BatchResultErrorEntry, want ...types.BatchResultErrorEntry) {
	x.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(types.BatchResultErrorEntry{}, "Message"), cmpopts.IgnoreUnexported(types.BatchResultErrorEntry{})); d != "" {
		x.Errorf("failed entries (-want +got):\n%s", d)
	}
}

func failure(id, code string, sender bool) types.BatchResultErrorEntry {
	return types.BatchResultErrorEntry{Id: &id, Code: &code, SenderFault: sender}
}

func TestBatchOfTen(t *testing.T) {
	standard(t, func(x *fixture) {
		bodies := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
		out, err := x.sendBatch(entries(bodies...))
		x.ok(err)
		if len(out.Successful) != 10 || len(out.Failed) != 0 {
			x.Fatalf("got %d successful, %d failed, want 10, 0", len(out.Successful), len(out.Failed))
		}
		got := x.want(bodies...)
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &x.url}
		for i, m := range got {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		deleted, err := x.c.DeleteMessageBatch(x.Context(), in)
		x.ok(err)
		if len(deleted.Successful) != 10 || len(x.srv.Messages("jobs")) != 0 {
			x.Errorf("%d deleted, %d still there, want 10, 0", len(deleted.Successful), len(x.srv.Messages("jobs")))
		}
	})
}

func TestBatchRefusedWhole(t *testing.T) {
	const space = "AWS.SimpleQueueService."
	long := strings.Repeat("i", 81)
	half := strings.Repeat("x", 1<<19)
	named := func(id string) []types.SendMessageBatchRequestEntry {
		e := entries("a")
		e[0].Id = &id
		return e
	}
	twice := entries("a", "b")
	twice[1].Id = twice[0].Id
	for name, c := range map[string]struct {
		entries []types.SendMessageBatchRequestEntry
		code    string
	}{
		"empty":      {[]types.SendMessageBatchRequestEntry{}, "EmptyBatchRequest"},
		"eleven":     {entries(strings.Split("abcdefghijk", "")...), "TooManyEntriesInBatchRequest"},
		"same ID":    {twice, "BatchEntryIdsNotDistinct"},
		"no ID":      {named(""), "InvalidBatchEntryId"},
		"space":      {named("a b"), "InvalidBatchEntryId"},
		"long ID":    {named(long), "InvalidBatchEntryId"},
		"1 MiB + 1":  {entries(half, half+"x"), "BatchRequestTooLong"},
		"1 MiB":      {entries(half, half), ""},
		"80-byte ID": {named(long[:80]), ""},
	} {
		t.Run(name, func(t *testing.T) {
			standard(t, func(x *fixture) {
				_, err := x.sendBatch(c.entries)
				if c.code == "" {
					x.ok(err)
					return
				}
				x.code(err, space+c.code)
				if n := len(x.srv.Messages("jobs")); n != 0 {
					x.Errorf("%d messages stored, want none", n)
				}
			})
		})
	}
}

func TestBatchOfFIFORefusedWhole(t *testing.T) {
	fifo(t, func(x *fixture) {
		e := entries("a", "b")
		for i := range e {
			e[i].MessageGroupId, e[i].MessageDeduplicationId = aws.String("g"), e[i].MessageBody
		}
		e[1].MessageDeduplicationId = nil
		_, err := x.sendBatch(e)
		x.code(err, invalidValue)
		e[1].MessageDeduplicationId, e[1].MessageGroupId = aws.String("b"), nil
		_, err = x.sendBatch(e)
		x.code(err, invalidValue)
		_, err = x.c.SendMessage(x.Context(), &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: aws.String("a"), MessageDeduplicationId: aws.String("a")})
		x.code(err, "MissingParameter")
		x.want()
	})
}

func TestBatchEntriesFail(t *testing.T) {
	t.Run("send", func(t *testing.T) {
		run(t, "jobs", attrs{"MaximumMessageSize": "1024"}, func(x *fixture) {
			e := entries("a", "b\x00", strings.Repeat("x", 1025), "d", "e")
			e[3].DelaySeconds = 901
			out, err := x.sendBatch(e)
			x.ok(err)
			x.failures(out.Failed, failure("1", "InvalidMessageContents", true), failure("2", invalidValue, true), failure("3", invalidValue, true))
			x.want("a", "e")
		})
	})
	t.Run("send to FIFO with a delay", func(t *testing.T) {
		fifo(t, func(x *fixture) {
			e := entries("a", "b")
			for i := range e {
				e[i].MessageGroupId, e[i].MessageDeduplicationId = aws.String("g"), e[i].MessageBody
			}
			e[0].DelaySeconds = 1
			out, err := x.sendBatch(e)
			x.ok(err)
			x.failures(out.Failed, failure("0", invalidValue, true))
			x.want("b")
		})
	})
	t.Run("visibility", func(t *testing.T) {
		standard(t, func(x *fixture) {
			x.send("a")
			m := x.want("a")[0]
			out, err := x.c.ChangeMessageVisibilityBatch(x.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &x.url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("garbage"), ReceiptHandle: aws.String("garbage"), VisibilityTimeout: 1},
				{Id: aws.String("long"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 43201},
				{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0},
				{Id: aws.String("expired"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 1},
			}})
			x.ok(err)
			x.failures(out.Failed, failure("garbage", badHandle, true), failure("long", invalidValue, true), failure("expired", notInFlight, true))
			if len(out.Successful) != 1 || *out.Successful[0].Id != "good" {
				x.Errorf("successful %v, want good", out.Successful)
			}
			x.want("a")
		}, strictHandles)
	})
	t.Run("delete", func(t *testing.T) {
		standard(t, func(x *fixture) {
			x.send("a")
			m := x.want("a")[0]
			out, err := x.c.DeleteMessageBatch(x.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &x.url, Entries: []types.DeleteMessageBatchRequestEntry{
				{Id: aws.String("garbage"), ReceiptHandle: aws.String("garbage")}, {Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle},
			}})
			x.ok(err)
			x.failures(out.Failed, failure("garbage", badHandle, true))
			if n := len(x.srv.Messages("jobs")); n != 0 {
				x.Errorf("%d messages, want none", n)
			}
		})
	})
}
