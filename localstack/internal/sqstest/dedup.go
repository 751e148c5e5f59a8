package sqstest

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var dedupCases = []testCase{
	// As above: "accepted successfully". Authors of emulators report that AWS returns the message ID of the first message; a
	// client must be able to read the response as a success.
	{name: "dedup/answer to a duplicate", run: func(x *exam) {
		q := x.fifo()
		first, again := x.send(q, "a1"), x.send(q, "a1")
		if *first.MessageId != *again.MessageId || str(first.SequenceNumber) != str(again.SequenceNumber) {
			x.fatalf("message %s, %s, then %s, %s", *first.MessageId, str(first.SequenceNumber), *again.MessageId, str(again.SequenceNumber))
		}
	}},
	// As above: only the ID decides. The digest in the response must be of the body just sent: the SDK checks it.
	{name: "dedup/another body", run: func(x *exam) {
		q := x.fifo()
		x.send(q, "a1")
		x.send(q, "a2", withID("a1"))
		x.want(q, "a1")
	}},
	// API SendMessage: "If a message with a particular MessageDeduplicationId is sent successfully, any messages sent with the
	// same MessageDeduplicationId are accepted successfully but aren't delivered during the 5-minute deduplication interval.",
	// which goes on "even after the message is received and deleted." Recorded: test_fifo_deduplication_arrives_once_after_delete.
	{name: "dedup/inside five minutes", passes: 299 * time.Second, run: func(x *exam) {
		q := x.fifo()
		x.send(q, "a1")
		x.delete(q, x.one(q, "a1"))
		x.pass(299 * time.Second)
		x.send(q, "a1")
		x.none(q)
	}},
	// As above: "If a message is sent successfully but the acknowledgement is lost and the message is resent with the same
	// MessageDeduplicationId after the deduplication interval, Amazon SQS can't detect duplicate messages." A duplicate inside
	// the interval does not renew it: the interval begins with the message that was "sent successfully".
	{name: "dedup/after five minutes", passes: 301 * time.Second, run: func(x *exam) {
		q := x.fifo()
		first := x.send(q, "a1")
		x.delete(q, x.one(q, "a1"))
		x.pass(200 * time.Second)
		x.send(q, "a1")
		x.pass(101 * time.Second)
		if again := x.send(q, "a1"); *again.MessageId == *first.MessageId {
			x.fatalf("a new message with the old ID %s", *first.MessageId)
		}
		x.want(q, "a1")
	}},
	// API SendMessageBatchRequestEntry: as SendMessage.
	{name: "dedup/in one batch", run: func(x *exam) {
		q := x.fifo()
		out := x.sendBatch(q, fifoEntries("a1", "a1", "a2"))
		if len(out.Successful) != 3 {
			x.fatalf("%d entries succeeded, want all 3", len(out.Successful))
		}
		x.want(q, "a1", "a2")
		x.none(q)
	}},
	// API SendMessage: as above, also when the first message is no longer in the queue.
	{name: "dedup/while in flight", run: func(x *exam) {
		q := x.fifo()
		m := x.sendOne(q, "a1")
		x.send(q, "a1")
		x.delete(q, m)
		x.none(q)
	}},
	// API SendMessage: "If you ... enable ContentBasedDeduplication for your queue, Amazon SQS uses a SHA-256 hash to generate
	// the MessageDeduplicationId using the body of the message (but not the attributes of the message)."
	{name: "dedup/by content", run: func(x *exam) {
		q := x.fifo(attrs{"ContentBasedDeduplication": "true"})
		for _, body := range []string{"a1", "a1", "a2"} {
			x.send(q, body, inGroup(ptr("g"), nil))
		}
		x.send(q, "a1", inGroup(ptr("g"), nil), withAttributes(types.MessageAttributeValue{DataType: ptr("String"), StringValue: ptr("v")}))
		x.want(q, "a1", "a2")
		x.none(q)
	}},
	// API SendMessage: "If the queue has ContentBasedDeduplication set, your MessageDeduplicationId overrides the generated
	// one."
	{name: "dedup/by content, unless there is an ID", run: func(x *exam) {
		q := x.fifo(attrs{"ContentBasedDeduplication": "true"})
		x.send(q, "a1", inGroup(ptr("g"), ptr("one")))
		x.send(q, "a1", inGroup(ptr("g"), ptr("two")))
		x.send(q, "a2", inGroup(ptr("g"), ptr("one")))
		x.want(q, "a1", "a1")
		x.none(q)
	}},
	// API SendMessage: "If you send one message with ContentBasedDeduplication enabled and then another message with a
	// MessageDeduplicationId that is the same as the one generated for the first MessageDeduplicationId, the two messages are
	// treated as duplicates".
	{name: "dedup/by content, the ID is its SHA-256", run: func(x *exam) {
		q := x.fifo(attrs{"ContentBasedDeduplication": "true"})
		sum := sha256.Sum256([]byte("a1"))
		id := hex.EncodeToString(sum[:])
		x.send(q, "a1", inGroup(ptr("g"), nil))
		x.send(q, "a2", inGroup(ptr("g"), &id))
		if got := x.one(q, "a1").Attributes["MessageDeduplicationId"]; got != id {
			x.fatalf("MessageDeduplicationId %s, want %s", got, id)
		}
		x.none(q)
	}},
	// API SendMessage: the interval begins when a message "is sent successfully".
	{name: "dedup/refused message leaves no trace", run: func(x *exam) {
		q := x.fifo()
		if _, err := x.trySend(q, "a1", func(in *sqs.SendMessageInput) { in.MessageBody = ptr("\x00") }); err == nil {
			x.fatalf("a body of #x0 was accepted")
		}
		x.send(q, "a1")
		x.want(q, "a1")
	}},
}

func withID(id string) func(*sqs.SendMessageInput) {
	return func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = &id }
}

var dedupScopeCases = []testCase{
	// API CreateQueue, DeduplicationScope: "whether message deduplication occurs at the message group or queue level".
	// Recorded: test_fifo_deduplication_not_on_message_group_id.
	{name: "dedup scope/queue: another group", run: func(x *exam) {
		q := x.fifo()
		x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
		x.send(q, "b1", inGroup(ptr("b"), ptr("d")))
		x.want(q, "a1")
		x.none(q)
	}},
	// As above.
	{name: "dedup scope/group: another group", run: func(x *exam) {
		q := x.fifo(perGroup)
		x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
		x.send(q, "b1", inGroup(ptr("b"), ptr("d")))
		x.want(q, "a1", "b1")
	}},
	// As above: a message of one group does not end the interval of another group.
	{name: "dedup scope/group: groups in turn", run: func(x *exam) {
		q := x.fifo(perGroup)
		x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
		x.send(q, "b1", inGroup(ptr("b"), ptr("d")))
		x.send(q, "a2", inGroup(ptr("a"), ptr("d")))
		x.want(q, "a1", "b1")
		x.none(q)
	}},
	// Recorded, August 2025: the scope stays that of the queue's creation, although the attribute changes.
	{name: "dedup scope/change has no effect", run: func(x *exam) {
		q := x.fifo()
		x.ok(x.set(q, perGroup))
		x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
		x.send(q, "b1", inGroup(ptr("b"), ptr("d")))
		x.want(q, "a1")
		x.none(q)
	}},
}

var perGroup = attrs{"DeduplicationScope": "messageGroup"}

var tokenCases = []testCase{
	// API SendMessage, MessageDeduplicationId and MessageGroupId: up to 128 characters, "alphanumeric characters (a-z, A-Z, 0-9) and
	// punctuation".
	{name: "token/groups and deduplication IDs accepted", run: func(x *exam) {
		q := x.fifo()
		for _, token := range []string{"d", punctuation, strings.Repeat("d", 128)} {
			x.send(q, "a1", inGroup(&token, &token))
		}
	}},
	// Recorded: test_message_deduplication_id_too_long, test_message_group_id_too_long: InvalidParameterValue. API SendMessage: as above,
	// also on a standard queue.
	{name: "token/groups and deduplication IDs refused", run: func(x *exam) {
		q, standard := x.fifo(), x.standard()
		for _, token := range illegalTokens {
			_, err := x.trySend(q, "a1", inGroup(ptr("g"), &token))
			x.fails("the deduplication ID "+token, err, invalidValue)
			_, err = x.trySend(q, "a1", inGroup(&token, ptr("d")))
			x.fails("the group "+token, err, invalidValue)
			_, err = x.trySend(standard, "a", inGroup(&token, nil))
			x.fails("the group of a standard queue "+token, err, invalidValue)
		}
	}},
	// API SendMessage: MessageDeduplicationId "applies only to FIFO (first-in-first-out) queues".
	{name: "token/deduplication ID refused by a standard queue", run: func(x *exam) {
		_, err := x.trySend(x.standard(), "a", inGroup(nil, ptr("d")))
		x.fails("a deduplication ID", err, invalidValue)
	}},
}

func inGroup(group, dedupID *string) func(*sqs.SendMessageInput) {
	return func(in *sqs.SendMessageInput) { in.MessageGroupId, in.MessageDeduplicationId = group, dedupID }
}

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

var illegalTokens = []string{"", "a b", "ä", "\t", strings.Repeat("d", 129)}
