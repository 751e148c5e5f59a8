package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// longestRetention is the longest that a queue keeps a message.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
const longestRetention = 14 * 24 * time.Hour

// RestoreOptions configure [DLQ.Restore].
type RestoreOptions struct {
	// Selection selects by what the archive says: States are those of the time of the export.
	Selection

	// DryRun decides about all messages without sending them.
	// Default: false.
	DryRun bool
	// SkipAhead also restores messages of a FIFO group behind a message that was left, so the group loses its order. It doesn't
	// restore messages behind one with an unknown outcome.
	// Default: false, a message that is left holds back its group.
	SkipAhead bool
	// OtherQueue also restores messages that were archived from another dead-letter queue of the same kind.
	// Default: false, they are left.
	OtherQueue bool
	// Journal is a file, made with mode 0600, to which the restore writes each message ID before it sends the copy, and after the
	// send. Each line is on the disk before the next step. A restore with the journal of an earlier one, killed or ended, doesn't
	// send its messages again. It refuses other redrives and restores as RedriveOptions.Journal does.
	// Default: "", the restore runs without a journal.
	Journal string
}

// Restore sends messages of an archive to the dead-letter queue again. A copy has the body, the attributes, the group and the
// trace header of its message, a dead-letter-source of the form "source cause first-sent-ms", and an event-key if the event's key
// would change otherwise. So List shows it with its earlier key, source, cause and reason. Restore leaves messages that would lose
// their key, and messages of another queue. If only the dead-letter-source has no room, Restore sends the message without it, unless
// the message is so old that its event's record may expire before the message does.
//
// On FIFO the messages of a group are sent one after the other, in the order of the archive. A message that is left, also by the
// filters, holds back those behind it, unless SkipAhead is set. A message of another queue doesn't. A message that is in the archive
// twice is sent once, in its first place.
//
// Restore reads the archive once, ten messages at a time, and doesn't read records. A line that it can't read ends it, after it has
// restored the messages before that line. A last line without its end is in Report.Torn. After a kill, a restore with the same
// Journal sends second copies only of messages whose send was under way.
func (d *DLQ) Restore(ctx context.Context, archive io.Reader, optFns ...func(*RestoreOptions)) (Report, error) {
	var o RestoreOptions
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Journal != "" {
		unlock, err := d.lockIn("Restore", filepath.Dir(o.Journal))
		if err != nil {
			return Report{}, err
		}
		defer unlock()
	}
	if err := d.checkMoveTasks(ctx, "Restore"); err != nil {
		return Report{}, err
	}
	r := newRun(d, RedriveOptions{Selection: o.Selection, DryRun: o.DryRun, SkipAhead: o.SkipAhead}, Report{Run: rand.Text()})
	s := &restore{run: r, otherQueue: o.OtherQueue, from: map[*Message]*archived{}}
	r.held, r.attempt, r.done = nil, s.try, ActionRestored // nothing is received
	if o.Journal != "" {
		err := r.keepJournal(o.Journal, true)
		defer r.journal.close()
		if err != nil {
			return Report{}, err
		}
	}
	err := errors.Join(s.restore(ctx, archive), context.Cause(ctx))
	if err == nil {
		err = r.journal.write(journalLine{Done: true})
	}
	return r.report, err
}

// restore is a run that sends the messages of an archive.
type restore struct {
	*run
	otherQueue bool
	from       map[*Message]*archived // of a batch
}

func (s *restore) restore(ctx context.Context, archive io.Reader) error {
	defer s.closePublishers()
	var batch []*Message
	for a, err := range readArchive(archive) {
		if torn, ok := errors.AsType[*archiveError](err); ok && torn.err == errTornLine {
			s.report.Torn = torn.line
			break
		}
		if err != nil {
			return errors.Join(s.sendAll(ctx, batch), err)
		}
		if s.results[a.ID] == nil && s.add(a) {
			batch = append(batch, &a.Message)
		}
		if len(batch) == host.MaxBatch {
			if err := s.sendAll(ctx, batch); err != nil || ctx.Err() != nil {
				return err
			}
			batch = nil
		}
	}
	return s.sendAll(ctx, batch)
}

// add makes the result of a message, and reports whether the message is one of this queue.
func (s *restore) add(a *archived) bool {
	res := &Result{ID: a.ID, Group: a.Group, RecordKey: a.RecordKey, State: a.State, Class: a.Class}
	s.results[a.ID], s.from[&a.Message] = res, a
	s.report.Results = append(s.report.Results, res)
	s.report.Total++
	switch copyID, sent := s.journal.sentBefore(a.ID); {
	case sent:
		res.Action, res.SentID = ActionRestored, copyID
	case a.queue != s.d.arn && !s.otherQueue:
		res.Action, res.Err = ActionLeft, ErrOtherQueue
	case host.IsFIFO(a.queue) != s.d.fifo:
		res.Action, res.Err = ActionLeft, errOtherKind
	}
	return res.Action != ActionLeft
}

// sendAll sends the messages of a batch, those of a FIFO group one after the other.
func (s *restore) sendAll(ctx context.Context, batch []*Message) error {
	s.sendInLines(ctx, batch)
	clear(s.from)
	return s.failed
}

func (s *restore) try(ctx context.Context, m *Message) (Action, string, error) {
	if err := s.whyHeld(ctx, m); err != nil {
		return ActionLeft, "", err
	}
	action, copyID, err := s.send(ctx, m, s.d.url, restoreDedupID(s.from[m]), func(fits func(size int) bool) (*sqsonce.Message, error) {
		return s.d.restoredCopy(m, fits)
	})
	if action == ActionUndeleted {
		action = ActionRestored
	}
	return action, copyID, err
}

// restoredCopy returns what is sent for a message of an archive.
func (d *DLQ) restoredCopy(archived *Message, fits func(size int) bool) (*sqsonce.Message, error) {
	m := *archived
	m.QueueARN = cmp.Or(m.QueueARN, d.source)
	c := m.Message
	for _, withOrigin := range []bool{true, false} {
		if c.Attributes = maps.Clone(m.Attributes); c.Attributes == nil {
			c.Attributes = map[string]sqsonce.Attribute{}
		}
		if withOrigin {
			c.Attributes[sqsonce.AttrDeadLetterSource] = d.originAttribute(&m)
		}
		if err := d.keepRestoredKey(&m, &c); err != nil {
			return nil, err
		}
		if len(c.Attributes) <= host.MaxAttributes && fits(host.MessageBytes(c.Body, c.Attributes)) {
			return &c, d.keepsAge(&m, &c)
		}
	}
	return nil, ErrNoRoom
}

// keepRestoredKey gives the copy the key of the message, in the queue that List will find for it. A message without a key, such as
// one whose key function fails, has none that could be lost. But where the key depends on a queue that is not known, it may be
// made of the message ID, too.
func (d *DLQ) keepRestoredKey(m *Message, c *sqsonce.Message) error {
	if _, err := d.recordKey(m); err != nil {
		if errors.Is(err, ErrNoSource) || errors.Is(err, ErrS3) {
			return err
		}
		return nil
	}
	_, c.QueueARN = d.cameFrom(c.Attributes, "")
	return d.keepKey(m, c)
}

// keepsAge returns an error if the copy could be taken for a message that is too new to have had a record which has expired.
func (d *DLQ) keepsAge(m *Message, c *sqsonce.Message) error {
	now := time.Now()
	sent := Message{Message: *c}
	sent.SentAt = now
	expires := m.firstSent().Add(d.opts.Retention - expiryMargin)
	if sent.firstSent().After(m.firstSent()) && now.Add(longestRetention).After(expires) {
		return errAgeLost
	}
	return nil
}

// restoreDedupID returns the MessageDeduplicationId of a restored message: the same one each time that this line is restored.
func restoreDedupID(a *archived) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(a.run), a.run, a.ID))
	return "restore|" + hex.EncodeToString(sum[:])
}
