package sqstest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var batchErrorCases = []testCase{
	{name: "batch/send: empty", run: sendsRefused(0, "EmptyBatchRequest")},
	{name: "batch/send: eleven entries", run: sendsRefused(11, "TooManyEntriesInBatchRequest")},
	{name: "batch/send: entry IDs repeated", run: sendRepeatedIDs},
	{name: "batch/send: entry ID refused", run: sendBadIDs},
	{name: "batch/delete: empty", run: deletesRefused(0, "EmptyBatchRequest")},
	{name: "batch/delete: eleven entries", run: deletesRefused(11, "TooManyEntriesInBatchRequest")},
	{name: "batch/delete: entry IDs repeated", run: deleteRepeatedIDs},
	{name: "batch/visibility: empty", run: visibilitiesRefused(0, "EmptyBatchRequest")},
	{name: "batch/visibility: eleven entries", run: visibilitiesRefused(11, "TooManyEntriesInBatchRequest")},
	{name: "batch/visibility: entry IDs repeated", run: visibilityRepeatedIDs},
}

// API SendMessageBatch, errors: EmptyBatchRequest, TooManyEntriesInBatchRequest. Nothing of the request is performed.
// Recorded: test_too_many_entries_in_batch_request.
func sendsRefused(n int, code string) func(*exam) {
	return func(x *exam) {
		q := x.standard()
		_, err := x.trySendBatch(q, entries(strings.Split("abcdefghijk", "")[:n]...))
		x.fails("a batch", err, code)
		x.none(q)
	}
}

// API SendMessageBatch, errors: BatchEntryIdsNotDistinct.
func sendRepeatedIDs(x *exam) {
	q := x.standard()
	e := entries("a", "b", "c")
	e[2].Id = e[0].Id
	_, err := x.trySendBatch(q, e)
	x.fails("an entry ID twice", err, "BatchEntryIdsNotDistinct")
	x.none(q)
}

// Recorded: test_invalid_batch_id and test_delete_message_batch_invalid_msg_id: "A batch entry id can only contain
// alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
func sendBadIDs(x *exam) {
	q := x.standard()
	for _, id := range []string{"", "a b", "a.b", "ä", strings.Repeat("i", 81)} {
		e := entries("a")
		e[0].Id = &id
		_, err := x.trySendBatch(q, e)
		x.fails("entry ID "+id, err, "InvalidBatchEntryId")
	}
}

func handles(n int) []*string {
	var out []*string
	for range n {
		out = append(out, ptr("garbage"))
	}
	return out
}

// API DeleteMessageBatch, errors.
func deletesRefused(n int, code string) func(*exam) {
	return func(x *exam) {
		_, err := x.c.DeleteMessageBatch(x.ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &x.standard().url, Entries: deleteEntries(handles(n)...)})
		x.fails("a batch", err, code)
	}
}

// API DeleteMessageBatch, errors: BatchEntryIdsNotDistinct. Nothing of the request is performed.
func deleteRepeatedIDs(x *exam) {
	q := x.standard()
	x.sendAll(q, "a", "b")
	e := deleteEntries(handlesOf(x.want(q, "a", "b"))...)
	e[1].Id = e[0].Id
	_, err := x.c.DeleteMessageBatch(x.ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: e})
	x.fails("an entry ID twice", err, "BatchEntryIdsNotDistinct")
	x.has(q, attrs{"ApproximateNumberOfMessagesNotVisible": "2"})
}

// API ChangeMessageVisibilityBatch, errors.
func visibilitiesRefused(n int, code string) func(*exam) {
	return func(x *exam) {
		_, err := x.c.ChangeMessageVisibilityBatch(x.ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &x.standard().url, Entries: visibilityEntries(0, handles(n)...)})
		x.fails("a batch", err, code)
	}
}

// API ChangeMessageVisibilityBatch, errors: BatchEntryIdsNotDistinct. Nothing of the request is performed.
func visibilityRepeatedIDs(x *exam) {
	q := x.standard()
	x.sendAll(q, "a", "b")
	e := visibilityEntries(0, handlesOf(x.want(q, "a", "b"))...)
	e[1].Id = e[0].Id
	_, err := x.c.ChangeMessageVisibilityBatch(x.ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: e})
	x.fails("an entry ID twice", err, "BatchEntryIdsNotDistinct")
	x.none(q)
}
