package sqstest

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var messageCases = []testCase{
	// API SendMessage, ReceiveMessage: MessageId, MD5OfMessageBody, MD5OfBody ("digest of the non-URL-encoded message body
	// string").
	{name: "message/round trip", run: func(x *exam) {
		q := x.standard()
		body := "déjà vu, \"quoted\" & <tagged>\n\ttabbed 😀"
		sum := md5.Sum([]byte(body))
		sent := x.send(q, body)
		m := x.one(q, body)
		if str(sent.MessageId) != str(m.MessageId) || sent.MessageId == nil {
			x.fatalf("sent as %s, received as %s", str(sent.MessageId), str(m.MessageId))
		}
		if want := hex.EncodeToString(sum[:]); str(sent.MD5OfMessageBody) != want || str(m.MD5OfBody) != want {
			x.fatalf("digests %s and %s, want %s", str(sent.MD5OfMessageBody), str(m.MD5OfBody), want)
		}
		if sent.SequenceNumber != nil {
			x.fatalf("SequenceNumber %s from a standard queue, want none", *sent.SequenceNumber)
		}
	}},
	// API ReceiveMessage: a short poll of an empty queue returns no messages, and no error.
	{name: "message/empty queue", run: func(x *exam) { x.none(x.standard()) }},
	// API ReceiveMessage, MaxNumberOfMessages: "Valid values: 1 to 10. Default: 1."
	{name: "message/one unless asked for more", run: func(x *exam) {
		q := x.standard()
		x.sendAll(q, "a", "b")
		for range 2 {
			if got := x.receive(q, 0); len(got) != 1 { // the SDK does not send 0
				x.fatalf("received %q, want one message", bodiesOf(got))
			}
		}
	}},
	// Guide sqs-visibility-timeout: the message remains in the queue but becomes temporarily invisible to other consumers.
	{name: "message/hidden while in flight", run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		x.one(q, "a")
		x.none(q)
	}},
	// Guide sqs-queue-message-identifiers: every time you receive a message, you get a different receipt handle.
	{name: "message/same ID and new handle when received again", passes: time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		first := x.sendOne(q, "a")
		x.hidden(q, time.Second)
		second := x.one(q, "a")
		if *first.MessageId != *second.MessageId {
			x.fatalf("message IDs %s and %s of one message", *first.MessageId, *second.MessageId)
		}
		if *first.ReceiptHandle == *second.ReceiptHandle {
			x.fatalf("the same receipt handle twice: %s", *first.ReceiptHandle)
		}
	}},
	// Guide sqs-queue-message-identifiers: each message receives a system-assigned message ID.
	{name: "message/IDs differ", run: func(x *exam) {
		q := x.standard()
		if a, b := x.send(q, "a"), x.send(q, "a"); *a.MessageId == *b.MessageId {
			x.fatalf("two messages with ID %s", *a.MessageId)
		}
	}},
	// Guide sqs-visibility-timeout. AWS delivers at least once; a server for tests has no reason to deliver twice here.
	{name: "message/many receivers get each message once", run: func(x *exam) {
		const messages, receivers = 200, 8
		q := x.standard()
		for i := 0; i < messages; i += 10 {
			var bodies []string
			for j := range 10 {
				bodies = append(bodies, strconv.Itoa(i+j))
			}
			x.sendBatch(q, entries(bodies...))
		}
		seen := map[string]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		errs := make(chan error, receivers)
		for range receivers {
			wg.Go(func() {
				errs <- drain(x.ctx, x.c, q, func(m types.Message) { mu.Lock(); seen[*m.Body]++; mu.Unlock() })
			})
		}
		wg.Wait()
		for range receivers {
			x.ok(<-errs)
		}
		if len(seen) != messages {
			x.fatalf("received %d of %d messages", len(seen), messages)
		}
		for body, n := range seen {
			if n != 1 {
				x.fatalf("received %s %d times", body, n)
			}
		}
	}},
}

// drain receives and deletes until the queue is empty.
func drain(ctx context.Context, c *sqs.Client, q *queue, f func(types.Message)) error {
	for {
		out, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, MaxNumberOfMessages: 10})
		if err != nil || len(out.Messages) == 0 {
			return err
		}
		var del []types.DeleteMessageBatchRequestEntry
		for i, m := range out.Messages {
			f(m)
			del = append(del, types.DeleteMessageBatchRequestEntry{Id: ptr(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		if _, err := c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: del}); err != nil {
			return err
		}
	}
}
