package sqstest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var tokenCases = []testCase{
	{name: "token/no group refused", run: noGroup},
	{name: "token/no group in a batch refuses it whole", run: noGroupBatch},
	{name: "token/no deduplication ID refused", run: noDedupID},
	{name: "token/no deduplication ID in a batch refuses it whole", run: noDedupIDBatch},
	{name: "token/deduplication IDs accepted", run: dedupIDsAccepted},
	{name: "token/deduplication IDs refused", run: dedupIDsRefused},
	{name: "token/groups accepted", run: groupsAccepted},
	{name: "token/groups refused", run: groupsRefused},
	{name: "token/deduplication ID refused by a standard queue", run: dedupIDOnStandard},
}

func inGroup(group, dedupID *string) func(*sqs.SendMessageInput) {
	return func(in *sqs.SendMessageInput) { in.MessageGroupId, in.MessageDeduplicationId = group, dedupID }
}

// Recorded: test_posting_to_fifo_requires_deduplicationid_group_id: MissingParameter.
func noGroup(x *exam) {
	_, err := x.trySend(x.fifo(), "a1", inGroup(nil, ptr("d")))
	x.fails("no group", err, missing)
}

// Recorded: test_send_batch_missing_message_group_id_for_fifo_queue: InvalidParameterValue, "The request must contain the
// parameter MessageGroupId.", for the request.
func noGroupBatch(x *exam) {
	q := x.fifo()
	e := fifoEntries("a1", "a2")
	e[1].MessageGroupId = nil
	_, err := x.trySendBatch(q, e)
	x.fails("no group in an entry", err, invalidValue, missing)
	x.none(q)
}

// Recorded: test_posting_to_fifo_requires_deduplicationid_group_id: "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided
// explicitly".
func noDedupID(x *exam) {
	_, err := x.trySend(x.fifo(), "a1", inGroup(ptr("g"), nil))
	x.fails("no deduplication ID", err, invalidValue)
}

// Recorded: test_send_batch_missing_deduplication_id_for_fifo_queue, for the request.
func noDedupIDBatch(x *exam) {
	q := x.fifo()
	e := fifoEntries("a1", "a2")
	e[1].MessageDeduplicationId = nil
	_, err := x.trySendBatch(q, e)
	x.fails("no deduplication ID in an entry", err, invalidValue)
	x.none(q)
}

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// API SendMessage, MessageDeduplicationId: up to 128 characters, "alphanumeric characters (a-z, A-Z, 0-9) and punctuation".
func dedupIDsAccepted(x *exam) {
	q := x.fifo()
	for _, id := range []string{"d", punctuation, strings.Repeat("d", 128)} {
		x.send(q, "a1", inGroup(ptr("g"), &id))
	}
}

var illegalTokens = []string{"", "a b", "ä", "\t", strings.Repeat("d", 129)}

// Recorded: test_message_deduplication_id_too_long: InvalidParameterValue. API SendMessage: as above.
func dedupIDsRefused(x *exam) {
	q := x.fifo()
	for _, id := range illegalTokens {
		_, err := x.trySend(q, "a1", inGroup(ptr("g"), &id))
		x.fails("the deduplication ID "+id, err, invalidValue)
	}
}

// API SendMessage, MessageGroupId: as the deduplication ID.
func groupsAccepted(x *exam) {
	q := x.fifo()
	for _, group := range []string{"g", punctuation, strings.Repeat("g", 128)} {
		x.send(q, "a1", inGroup(&group, ptr("of-"+group[:1])))
	}
}

// Recorded: test_message_group_id_too_long: InvalidParameterValue. API SendMessage: as above.
func groupsRefused(x *exam) {
	q := x.fifo()
	for _, group := range illegalTokens {
		_, err := x.trySend(q, "a1", inGroup(&group, ptr("d")))
		x.fails("the group "+group, err, invalidValue)
	}
}

// API SendMessage: MessageDeduplicationId "applies only to FIFO (first-in-first-out) queues".
func dedupIDOnStandard(x *exam) {
	_, err := x.trySend(x.standard(), "a", inGroup(nil, ptr("d")))
	x.fails("a deduplication ID", err, invalidValue)
}
