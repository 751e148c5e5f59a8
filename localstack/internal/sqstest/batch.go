package sqstest

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var batchCases = []testCase{
	// API SendMessageBatchResultEntry: Id, MessageId and MD5OfMessageBody of each entry.
	{name: "batch/results by entry", run: func(x *exam) {
		q := x.standard()
		out := x.sendBatch(q, entries("a", "b"))
		ids := map[string]string{}
		for _, m := range x.want(q, "a", "b") {
			ids[*m.Body] = *m.MessageId
		}
		for _, r := range out.Successful {
			body := map[string]string{"0": "a", "1": "b"}[str(r.Id)]
			if str(r.MessageId) != ids[body] || r.MD5OfMessageBody == nil {
				x.fatalf("entry %s: message %s, want %s", str(r.Id), str(r.MessageId), ids[body])
			}
		}
		if len(out.Successful) != 2 || len(out.Failed) != 0 {
			x.fatalf("%d succeeded and %d failed, want 2 and 0", len(out.Successful), len(out.Failed))
		}
	}},
	// Recorded: test_batch_send_with_invalid_char_should_succeed.
	{name: "batch/one bad entry fails alone", run: func(x *exam) {
		q := x.standard()
		out := x.sendBatch(q, entries("a", "\x00", "c"))
		x.failed(out.Failed, "1", "InvalidMessageContents")
		if len(out.Successful) != 2 || len(out.Failed) != 1 {
			x.fatalf("%d succeeded and %d failed, want 2 and 1", len(out.Successful), len(out.Failed))
		}
		x.want(q, "a", "c")
	}},
	// API SendMessageBatchRequestEntry, DelaySeconds: "the length of time ... for which a specific message is delayed".
	{name: "batch/delay of an entry", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard()
		e := entries("now", "later")
		e[1].DelaySeconds = 2
		x.sendBatch(q, e)
		x.one(q, "now")
		x.hidden(q, 2*time.Second)
		x.one(q, "later")
	}},
	// API SendMessageBatchRequestEntry: each entry has its own MessageAttributes and MessageSystemAttributes.
	{name: "batch/attributes of an entry", run: func(x *exam) {
		q := x.standard()
		e := entries("a", "b")
		e[1].MessageAttributes = map[string]types.MessageAttributeValue{"k": {DataType: ptr("String"), StringValue: ptr("v")}}
		out := x.sendBatch(q, e)
		for _, r := range out.Successful {
			if digest := attributesDigest(e[1].MessageAttributes); *r.Id == "1" && str(r.MD5OfMessageAttributes) != digest {
				x.fatalf("digest %s, want %s", str(r.MD5OfMessageAttributes), digest)
			}
		}
		for _, m := range x.want(q, "a", "b") {
			if has := len(m.MessageAttributes) > 0; has != (*m.Body == "b") {
				x.fatalf("attributes of %s: %v", *m.Body, m.MessageAttributes)
			}
		}
	}},
	// API SendMessageBatch ("up to 10 messages"), ReceiveMessage ("up to 10 messages"), DeleteMessageBatch ("Deletes up to ten messages").
	{name: "batch/ten sent, received and deleted", run: func(x *exam) {
		q := x.standard()
		bodies := strings.Split("abcdefghij", "")
		if sent := x.sendBatch(q, entries(bodies...)); len(sent.Successful) != 10 || len(sent.Failed) != 0 {
			x.fatalf("%d sent and %d failed, want 10 and 0", len(sent.Successful), len(sent.Failed))
		}
		out := x.deleteBatch(q, deleteEntries(handlesOf(x.want(q, bodies...))...))
		if len(out.Successful) != 10 || len(out.Failed) != 0 {
			x.fatalf("%d deleted and %d failed, want 10 and 0", len(out.Successful), len(out.Failed))
		}
		x.has(q, attrs{"ApproximateNumberOfMessagesNotVisible": "0"})
	}},
	// API DeleteMessageBatch: "The result of the action on each message is reported individually".
	{name: "batch/delete fails by entry", run: func(x *exam) {
		q := x.standard()
		x.sendAll(q, "a", "b")
		got := x.want(q, "a", "b")
		out := x.deleteBatch(q, deleteEntries(got[0].ReceiptHandle, ptr("garbage"), got[1].ReceiptHandle))
		x.failed(out.Failed, "1", invalidHandle)
		if len(out.Successful) != 2 {
			x.fatalf("%d deleted, want 2", len(out.Successful))
		}
	}},
	// API ChangeMessageVisibilityBatch.
	{name: "batch/visibility of all to 0", run: func(x *exam) {
		q := x.standard()
		x.sendAll(q, "a", "b", "c")
		out := x.visibilityBatch(q, visibilityEntries(0, handlesOf(x.want(q, "a", "b", "c"))...))
		if len(out.Successful) != 3 {
			x.fatalf("%d changed, want 3", len(out.Successful))
		}
		for _, m := range x.want(q, "a", "b", "c") {
			x.received(m, 2)
		}
	}},
	// API ChangeMessageVisibilityBatch: "The result of the action on each message is reported individually".
	{name: "batch/visibility fails by entry", run: func(x *exam) {
		q := x.standard()
		x.sendAll(q, "a", "b")
		got := x.want(q, "a", "b")
		e := visibilityEntries(0, got[0].ReceiptHandle, ptr("garbage"), got[1].ReceiptHandle)
		e[2].VisibilityTimeout = 43201
		out := x.visibilityBatch(q, e)
		x.failed(out.Failed, "1", invalidHandle)
		x.failed(out.Failed, "2", invalidValue)
		x.one(q, *got[0].Body)
	}},
	// API SendMessageBatchRequestEntry, Id: "This identifier can have up to 80 characters."
	{name: "batch/longest entry ID", run: func(x *exam) {
		q := x.standard()
		e := entries("a")
		e[0].Id = ptr(strings.Repeat("aB0-_", 16))
		if out := x.sendBatch(q, e); len(out.Successful) != 1 || *out.Successful[0].Id != *e[0].Id {
			x.fatalf("an ID of 80 characters: got %d successful and %d failed", len(out.Successful), len(out.Failed))
		}
	}},
}

// entries returns the entries of a batch, with their positions as IDs.
func entries(bodies ...string) []types.SendMessageBatchRequestEntry {
	out := []types.SendMessageBatchRequestEntry{} // the SDK refuses nil
	for i, b := range bodies {
		out = append(out, types.SendMessageBatchRequestEntry{Id: ptr(strconv.Itoa(i)), MessageBody: &b})
	}
	return out
}

// fifoEntries returns entries for a FIFO queue, with group and deduplication ID as in send.
func fifoEntries(bodies ...string) []types.SendMessageBatchRequestEntry {
	out := entries(bodies...)
	for i, b := range bodies {
		out[i].MessageGroupId, out[i].MessageDeduplicationId = ptr(b[:max(1, len(b)-1)]), &b
	}
	return out
}

func (x *exam) trySendBatch(q *queue, e []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return x.c.SendMessageBatch(x.ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: e})
}

func (x *exam) sendBatch(q *queue, e []types.SendMessageBatchRequestEntry) *sqs.SendMessageBatchOutput {
	out, err := x.trySendBatch(q, e)
	if err != nil {
		x.fatalf("SendMessageBatch: got error %v, want none", err)
	}
	return out
}

// deleteEntries and visibilityEntries return entries for messages with these handles, with their positions as IDs.
func deleteEntries(handles ...*string) []types.DeleteMessageBatchRequestEntry {
	out := []types.DeleteMessageBatchRequestEntry{} // the SDK refuses nil
	for i, h := range handles {
		out = append(out, types.DeleteMessageBatchRequestEntry{Id: ptr(strconv.Itoa(i)), ReceiptHandle: h})
	}
	return out
}

func visibilityEntries(seconds int32, handles ...*string) []types.ChangeMessageVisibilityBatchRequestEntry {
	out := []types.ChangeMessageVisibilityBatchRequestEntry{} // the SDK refuses nil
	for i, h := range handles {
		out = append(out, types.ChangeMessageVisibilityBatchRequestEntry{Id: ptr(strconv.Itoa(i)), ReceiptHandle: h, VisibilityTimeout: seconds})
	}
	return out
}

func (x *exam) deleteBatch(q *queue, e []types.DeleteMessageBatchRequestEntry) *sqs.DeleteMessageBatchOutput {
	out, err := x.c.DeleteMessageBatch(x.ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: e})
	if err != nil {
		x.fatalf("DeleteMessageBatch: got error %v, want none", err)
	}
	return out
}

func (x *exam) visibilityBatch(q *queue, e []types.ChangeMessageVisibilityBatchRequestEntry) *sqs.ChangeMessageVisibilityBatchOutput {
	out, err := x.c.ChangeMessageVisibilityBatch(x.ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: e})
	if err != nil {
		x.fatalf("ChangeMessageVisibilityBatch: got error %v, want none", err)
	}
	return out
}

func handlesOf(messages []types.Message) []*string {
	var out []*string
	for _, m := range messages {
		out = append(out, m.ReceiptHandle)
	}
	return out
}

var batchErrorCases = []testCase{
	// API SendMessageBatch, DeleteMessageBatch, ChangeMessageVisibilityBatch, errors: EmptyBatchRequest.
	{name: "batch/empty refused", run: func(x *exam) {
		q := x.standard()
		for i, err := range x.tryBatches(q, entries(), deleteEntries(), visibilityEntries(0)) {
			x.fails(batchOps[i], err, "EmptyBatchRequest")
		}
	}},
	// As above: BatchEntryIdsNotDistinct. Nothing of the request is performed.
	{name: "batch/entry IDs repeated refused", run: func(x *exam) {
		q := x.standard()
		x.sendAll(q, "a", "b")
		handles := handlesOf(x.want(q, "a", "b"))
		sends, deletes, changes := entries("c", "d", "e"), deleteEntries(handles...), visibilityEntries(0, handles...)
		sends[2].Id, deletes[1].Id, changes[1].Id = sends[0].Id, deletes[0].Id, changes[0].Id
		for i, err := range x.tryBatches(q, sends, deletes, changes) {
			x.fails(batchOps[i], err, "BatchEntryIdsNotDistinct")
		}
		x.none(q)
		x.has(q, attrs{"ApproximateNumberOfMessagesNotVisible": "2"})
	}},
	// Recorded: test_invalid_batch_id and test_delete_message_batch_invalid_msg_id: "A batch entry id can only contain
	// alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
	{name: "batch/send: entry ID refused", run: func(x *exam) {
		q := x.standard()
		for _, id := range []string{"", "a b", "a.b", "ä", strings.Repeat("i", 81)} {
			e := entries("a")
			e[0].Id = &id
			_, err := x.trySendBatch(q, e)
			x.fails("entry ID "+id, err, "InvalidBatchEntryId")
		}
	}},
}

var batchOps = [3]string{"SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"}

// tryBatches sends one request of each of batchOps.
func (x *exam) tryBatches(
	q *queue, sends []types.SendMessageBatchRequestEntry, deletes []types.DeleteMessageBatchRequestEntry, changes []types.ChangeMessageVisibilityBatchRequestEntry,
) (errs [3]error) {
	_, errs[0] = x.trySendBatch(q, sends)
	_, errs[1] = x.c.DeleteMessageBatch(x.ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: deletes})
	_, errs[2] = x.c.ChangeMessageVisibilityBatch(x.ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: changes})
	return errs
}
