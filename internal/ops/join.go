package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	// inspectsAtOnce is how many records are read at once.
	inspectsAtOnce = 16
	// inspectTimeout bounds one of them.
	inspectTimeout = 5 * time.Second
	// expiryMargin is the longest that a record is acquired before its message is sent to the dead-letter queue, or sent at all.
	expiryMargin = time.Hour
)

// join finds the records of the messages, and then says of those without one whether they never started. A store that is down is asked
// no more after as many failures as there are reads at once, so that a listing does not wait for each of a thousand messages.
func (d *DLQ) join(ctx context.Context, messages []*Message) {
	var failures atomic.Int64
	var down atomic.Pointer[error] // the first of these
	host.InParallel(len(messages), inspectsAtOnce, func(i int) {
		m := messages[i]
		if m.Problem = d.checkSource(m); m.Problem == nil && d.opts.Key != nil {
			m.RecordKey, m.Problem = d.recordKey(m)
			if key := m.Attributes[sqsonce.AttrRecordKey].String; key != "" && m.Cause == CauseRejected && m.Problem == nil && key != m.RecordKey {
				d.functions.Store(true) // the consumer has made another one
			}
		}
		if d.opts.Store != nil && m.RecordKey != "" {
			if failures.Load() >= inspectsAtOnce {
				m.Problem = fmt.Errorf("record %s not read: %w", m.RecordKey, *down.Load())
			} else if err := d.inspect(ctx, m); err != nil {
				m.Problem = fmt.Errorf("record %s not read: %w", m.RecordKey, err)
				if errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
					down.CompareAndSwap(nil, &err)
					failures.Add(1)
				}
			}
		}
	})
	host.InParallel(len(messages), inspectsAtOnce, func(i int) {
		m := messages[i]
		if m.NeverStarted = m.noRecord() && !m.Expired && d.neverStarted(m); m.NeverStarted && d.opts.SameKeys {
			m.State, m.Problem = StateNone, nil
		}
		m.explain()
	})
}

// checkSource returns an error for a message that is not one of Options.Sources.
func (d *DLQ) checkSource(m *Message) error {
	switch {
	case len(d.opts.Sources) == 0 || slices.Contains(d.opts.Sources, m.QueueARN):
		return nil
	case m.QueueARN == "":
		return ErrNoSource
	default:
		return fmt.Errorf("%w: %s", ErrOtherSource, m.QueueARN)
	}
}

// noRecord reports whether the store was asked, and has no record under the message's key.
func (m *Message) noRecord() bool { return errors.Is(m.Problem, ErrNoRecord) }

// inspect reads the record of a message. That there is none is the message's problem, and no error.
func (d *DLQ) inspect(ctx context.Context, m *Message) error {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	var r dedup.Record
	err := host.Contain(func() (err error) { r, err = d.opts.Store.Inspect(ctx, m.RecordKey); return err })
	now := time.Now()
	m.Record, m.State, m.Expired, m.Crashes = nil, StateUnknown, false, 0
	switch {
	case errors.Is(err, dedup.ErrNotFound):
		if m.Problem = errDefaultKey; d.opts.Consumer == "" {
			m.Problem = ErrNoRecordOwnKey
		}
		if m.Expired = now.Sub(m.firstSent()) > d.opts.Retention-expiryMargin; m.Expired {
			m.Problem = fmt.Errorf("%w, %w", m.Problem, ErrExpired)
		}
	case err != nil:
		return err
	default:
		if byConsumer(r) {
			d.proven.Store(true)
		}
		m.Record, m.State, m.Crashes = &r, StateOf(r, now), r.Crashes(now)
	}
	return nil
}

// prove lists the queue for SameKeys until a message is known to have a record. An operation then judges its first messages like its last
// ones.
func (d *DLQ) prove(ctx context.Context) error {
	if !d.opts.SameKeys || d.proven.Load() {
		return nil
	}
	_, err := d.List(ctx, 0)
	return err
}

// byConsumer reports whether a consumer has written the record, and not an operator, who may have mistyped its name.
func byConsumer(r dedup.Record) bool { return !strings.HasPrefix(r.Owner, host.OperatorPrefix) }

// neverStarted reports whether a missing record proves that the event never started. The consumer makes such keys: Options.SameKeys
// says so, and it has made that of another message. It proves nothing where a copy of the queue names a record under another key, where
// the message is perhaps another consumer's, or where the key depends on what a copy has lost: SQS's own move alone keeps the
// message ID.
func (d *DLQ) neverStarted(m *Message) bool {
	if !d.proven.Load() || d.functions.Load() || len(d.urls) != 1 && len(d.opts.Sources) == 0 {
		return false
	}
	if m.Cause == CauseReceivesUsedUp && originOf(m.Attributes).cause == "" {
		return true
	}
	other := m.Message
	if other.ID = "another"; other.DedupID != "" {
		other.DedupID = "another"
	}
	key, err := d.callKey(other)
	return err == nil && key == m.RecordKey
}
