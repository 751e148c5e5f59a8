package sqsworker

import (
	"context"
	"crypto/sha256"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// leastDeleters is how many deletes may be under way at once with few receivers: so many may hang before others wait. With
// many there are as many deletes as receives: each takes ten messages and one way to SQS and back. More would only open
// more connections, and wait there.
const leastDeleters = 16

// delete removes a message that is done. It stays under the heartbeat until SQS has confirmed that.
func (l *loop) delete(d *delivery) {
	l.set(d, deleting)
	d.tries = 0
	l.deletes.put(d)
	if d.group != nil && len(d.group.queue) > 0 {
		l.deletes.rush = true
	}
}

// sendDeletes deletes up to ten messages in one call, on a context that a stop does not end: a delete that died with its
// worker's context would have the message handled twice.
func (l *loop) sendDeletes(batch []*delivery) {
	now := l.now()
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &l.queueURL}
	in.Entries = make([]sqstypes.DeleteMessageBatchRequestEntry, 0, len(batch))
	handles := make([]string, 0, len(batch)) // copies: a message that is received again gets another one
	sent := batch[:0]
	for _, d := range batch {
		// With a handle whose time is over a delete proves nothing: a standard queue answers with success and may keep
		// the message.
		if !d.lease.live(now) {
			l.deletes.calls--
			l.lose(d, "visibility timeout passed before the delete", nil)
			continue
		}
		handles = append(handles, d.lease.handle)
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{
			Id: host.EntryID(len(sent)), ReceiptHandle: &handles[len(sent)],
		})
		d.sent = true
		sent = append(sent, d)
	}
	if len(sent) == 0 {
		return
	}
	l.counters.deletes.Add(1)
	l.deletes.open++
	l.call(func() event {
		ctx, cancel := context.WithTimeout(l.callCtx, callTimeout)
		defer cancel()
		out, err := l.client.DeleteMessageBatch(ctx, in, once)
		results := newResults(len(sent), err)
		if err == nil {
			for i := range out.Successful {
				results.succeeded(out.Successful[i].Id)
			}
			results.failed(out.Failed)
		}
		return deletesAnswered{sent, handles, results, err}
	})
}

// deletesAnswered is the answer to one call of DeleteMessageBatch.
type deletesAnswered struct {
	batch   []*delivery
	handles []string // as they were sent
	results results
	err     error // of the whole call
}

func (l *loop) deletesAnswered(e deletesAnswered) {
	if e.err != nil && isFatal(e.err) {
		l.fail(e.err)
	}
	l.deletes.open--
	l.deletes.calls -= len(e.batch)
	for i, d := range e.batch {
		l.deleted(d, e.handles[i], e.results[i])
	}
}

func (l *loop) deleted(d *delivery, handle string, err error) {
	d.sent = false
	switch {
	case d.state != deleting:
		// The lease was lost while the call was under way: the message is remembered, whatever the answer says.
	case err == nil && handle == d.lease.handle:
		if !d.rejected {
			l.deletedForGood(d)
		}
		l.leave(d)
	case d.lease.refused:
		l.lose(d, "receipt handle refused", err)
	case err == nil || handle != d.lease.handle:
		// The message was received again while the call was under way; the old handle's answer proves nothing.
		l.again(&l.deletes, d, deleting)
	case isHandleDead(err):
		l.lose(d, "receipt handle refused", err)
	default:
		if d.tries == 0 {
			l.log.Warn("sqsworker: delete failed", keyMessage, d.m.ID, keyError, err)
		}
		l.again(&l.deletes, d, deleting)
	}
}

// memory holds the IDs of the last messages that are done. SQS may deliver such a message again, because its delete was
// not confirmed or because a replica missed the receive or the delete; it is then deleted without running. A message
// that is sent again, or redriven from a dead-letter queue, has a new ID.
type memory struct {
	ids  map[memoryKey]bool // true: the delete is not confirmed
	ring []memoryKey        // in the order they came; zero: free
	next int
}

// memoryKey is a message ID. One of SQS's is a UUID, kept as its 16 bytes, of any other kind the digest is: the ID itself
// is part of a larger piece of the receive's answer, which it would keep too.
type memoryKey [16]byte

// memorySize bounds the memory: 10,000 IDs are about 1 MB. The record of package dedup covers what is forgotten, and
// other processes.
const memorySize = 10_000

func keyOf(id string) memoryKey {
	if uuid, ok := parseUUID(id); ok {
		return uuid
	}
	sum := sha256.Sum256([]byte(id))
	return memoryKey(sum[:])
}

// parseUUID takes the one way to write a UUID that SQS has, so that no two IDs have the same key.
func parseUUID(s string) (uuid [16]byte, ok bool) {
	if len(s) != 36 {
		return uuid, false
	}
	digits := 0
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return uuid, false
			}
			continue
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return uuid, false
		}
		uuid[digits/2] = uuid[digits/2]<<4 | c
		digits++
	}
	return uuid, uuid != [16]byte{} // the zero key is nobody's
}

func (m *memory) has(id string) bool { _, ok := m.ids[keyOf(id)]; return ok }

func (m *memory) undeleted(id string) bool { return m.ids[keyOf(id)] }

// add returns what undeleted said before.
func (m *memory) add(id string, undeleted bool) (before bool) {
	key := keyOf(id)
	if before, known := m.ids[key]; known {
		m.ids[key] = undeleted
		return before
	}
	if m.ids == nil {
		m.ids, m.ring = make(map[memoryKey]bool), make([]memoryKey, memorySize)
	}
	delete(m.ids, m.ring[m.next])
	m.ids[key], m.ring[m.next] = undeleted, key
	m.next = (m.next + 1) % len(m.ring)
	return false
}

// remember keeps a message that is done and cannot be deleted with the handle we have.
func (l *loop) remember(d *delivery) {
	if !l.finished.add(d.m.ID, true) {
		l.counters.undeleted.Add(1)
	}
}

// deletedForGood keeps a message whose delete is confirmed, against copies of it.
func (l *loop) deletedForGood(d *delivery) {
	if l.finished.add(d.m.ID, false) {
		l.counters.undeleted.Add(-1)
	}
}
