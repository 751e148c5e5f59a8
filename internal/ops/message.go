package ops

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Message is a message of a dead-letter queue, with the known facts about its event.
type Message struct {
	// Message is the message as the source's consumer would receive it, in its envelope: QueueARN is the source's, or "" where
	// nothing says which queue that is. ID, SentAt, the receive count and the receipt handle are the dead-letter queue's. SQS's
	// own move keeps the ID, and on a standard queue SentAt. The handle is of no use after a listing.
	sqsonce.Message
	// Cause is how the message came to the dead-letter queue.
	Cause Cause
	// Reason is why the message came here: the reject-reason of a rejected message, else that its process crashed, or that an operator
	// has freed it with a note, else the last error of the event's record, or the reason that the state implies. Class groups them.
	Reason string
	Class  Class
	// RecordKey is the key of the event's record, or "" if the key is not known.
	RecordKey string
	// State is the state of Record. Record is nil if the state is StateUnknown or StateNone.
	State  dedup.RecordState
	Record *dedup.Record
	// Crashes is how often the event's consumers have crashed, at least: [dedup.Record.Crashes].
	Crashes int
	// Expired says that a record that was not found may have expired, because the message is older than the records' retention.
	Expired bool
	// LostAt is when SQS deletes the message, or zero if that is not known. On a FIFO queue SQS counts from its own move, so it
	// deletes a message with the cause CauseReceivesUsedUp later.
	LostAt time.Time
	// Redriven is how often a redrive has sent the message before, by its redriven attribute.
	Redriven int
	// Problem is why the record is not known: [ErrNoRecord], a key function that failed, a key that the queue or SQS's move has
	// changed, or a store that did not answer. It is nil if Options have neither Key nor Store.
	Problem error
}

const (
	// inspectsAtOnce is how many records are read at once.
	inspectsAtOnce = 16
	// inspectTimeout bounds one of them.
	inspectTimeout = 5 * time.Second
	// expiryMargin is the longest that a record is acquired before its message is sent to the dead-letter queue, or sent at all.
	expiryMargin = time.Hour
)

// newMessage returns what a received message says by itself.
func (d *DLQ) newMessage(in sqstypes.Message) *Message {
	m := &Message{Message: *sqsworker.MessageOf(in, ""), State: StateUnknown}
	m.Cause, m.QueueARN = d.cameFrom(m.Attributes, in.Attributes[string(sqstypes.MessageSystemAttributeNameDeadLetterQueueSourceArn)])
	if d.copiedKey(m) != "" {
		d.functions.Store(true)
	}
	m.Redriven = historyOf(m.Attributes).times
	if d.retention > 0 && !m.SentAt.IsZero() {
		m.LostAt = m.SentAt.Add(d.retention)
	}
	return m
}

// cameFrom returns how a message came to the queue, and from which one. moved is its DeadLetterQueueSourceArn.
func (d *DLQ) cameFrom(attrs map[string]sqsonce.Attribute, moved string) (Cause, string) {
	if moved != "" { // a reject-reason, or a dead-letter-source, is of an earlier visit
		return CauseReceivesUsedUp, moved
	}
	if o := originOf(attrs); o.cause != "" {
		return o.cause, cmp.Or(o.source, d.source)
	}
	if _, rejected := attrs[sqsonce.AttrRejectReason]; rejected {
		return CauseRejected, d.source
	}
	return CauseSent, d.source
}

// recordKey returns the key of the event's record. Where something is missing that the consumer had, the key function is asked
// twice: a key that depends on it is that of another event.
func (d *DLQ) recordKey(m *Message) (string, error) {
	if key := d.copiedKey(m); key != "" {
		if !strings.HasPrefix(key, d.opts.Consumer+"#") {
			return "", fmt.Errorf("%w It is %q", ErrOtherConsumer, key)
		}
		return key, nil
	}
	key, err := d.callKey(m.Message)
	if m.QueueARN == "" {
		other := m.Message
		other.QueueARN = d.arn
		if k, otherErr := d.callKey(other); k != key || (otherErr == nil) != (err == nil) {
			return "", ErrNoSource
		}
	}
	if d.fifo && m.Cause == CauseReceivesUsedUp {
		other := m.Message
		other.DedupID = ""
		if k, _ := d.callKey(other); err == nil && k != key {
			return "", ErrDedupIDLost
		}
	}
	return key, err
}

// copiedKey returns the key of the record that the host's copy names, because a key function made it, or "".
func (d *DLQ) copiedKey(m *Message) string {
	if d.opts.Consumer == "" || m.Cause != CauseRejected {
		return ""
	}
	return m.Attributes[sqsonce.AttrRecordKey].String
}

// callKey calls the user's key function, or the default one.
func (d *DLQ) callKey(m sqsonce.Message) (key string, err error) {
	of := d.opts.Key
	if of == nil {
		of = ownKey
	}
	return d.callWith(m, of)
}

// ownKey is the default key function.
func ownKey(m *sqsonce.Message) (string, error) {
	key, _, err := m.Key()
	return key, err
}

// callWith calls a key function with the message as its consumer sees it.
func (d *DLQ) callWith(m sqsonce.Message, of func(*sqsonce.Message) (string, error)) (key string, err error) {
	get := func(_ context.Context, m *sqsonce.Message) (err error) { key, err = of(m); return err }
	if !d.opts.NoUnwrap {
		get = sqsonce.OpenEnvelope(get)
	}
	if err := host.Contain(func() error { return get(context.Background(), &m) }); err != nil {
		return "", fmt.Errorf("the key of message %s: %w", m.ID, err)
	}
	if key == "" {
		return "", fmt.Errorf("the key of message %s: %w", m.ID, sqsonce.ErrNoEventID)
	}
	return key, nil
}

// join finds the records of the messages, and then says of those without one whether they never started. A store that is down is asked
// no more after as many failures as there are reads at once, so that a listing does not wait for each of a thousand messages.
func (d *DLQ) join(ctx context.Context, messages []*Message) {
	var away atomic.Int64
	host.InParallel(len(messages), inspectsAtOnce, func(i int) {
		m := messages[i]
		if m.Problem = d.checkSource(m); m.Problem == nil && d.opts.Key != nil {
			m.RecordKey, m.Problem = d.recordKey(m)
		}
		if d.opts.Store != nil && m.RecordKey != "" {
			if away.Load() >= inspectsAtOnce {
				m.Problem = fmt.Errorf("record %s not read: %w", m.RecordKey, sqsonce.ErrUnavailable)
			} else if err := d.inspect(ctx, m); err != nil {
				m.Problem = fmt.Errorf("record %s not read: %w", m.RecordKey, err)
				if errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
					away.Add(1)
				}
			}
		}
	})
	host.InParallel(len(messages), inspectsAtOnce, func(i int) {
		m := messages[i]
		if m.noRecord() && !m.Expired && d.neverStarted(m) {
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
		m.Problem = fmt.Errorf("%w under %q: the consumer may use a key function or another store", ErrNoRecord, m.RecordKey)
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

// prove lists the queue for StockKeys until a message is known to have a record. An operation then judges its first messages like its last
// ones.
func (d *DLQ) prove(ctx context.Context) error {
	if !d.opts.StockKeys || d.proven.Load() {
		return nil
	}
	_, err := d.List(ctx, 0)
	return err
}

// byConsumer reports whether a consumer has written the record, and not an operator, who may have mistyped its name.
func byConsumer(r dedup.Record) bool { return !strings.HasPrefix(r.Owner, dedup.OperatorPrefix) }

// neverStarted reports whether a missing record proves that the event never started. The consumer makes such keys: Options say so, and
// it has made that of another message. It proves nothing where a copy of the queue names the record of a key function, where
// the message is perhaps another consumer's, or where the key depends on what a copy has lost: SQS's own move alone keeps the
// message ID.
func (d *DLQ) neverStarted(m *Message) bool {
	if !d.opts.StockKeys || !d.proven.Load() || d.functions.Load() || len(d.urls) != 1 && len(d.opts.Sources) == 0 {
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

// explain sets the reason. The last error of a record is that of an earlier run where the event has crashed since, or is completed. An
// operator's note is no cause, and makes no class.
func (m *Message) explain() {
	note := ""
	switch {
	case m.Cause == CauseRejected && m.Attributes[sqsonce.AttrRejectReason].String != "":
		m.Reason = m.Attributes[sqsonce.AttrRejectReason].String
	case m.State == dedup.StateCrashed:
		m.Reason = fmt.Sprintf("its process crashed %s at least", times(m.Crashes))
	case m.reopened():
		m.Reason, note = Freed.Text, m.Record.Note
	case m.Record != nil && m.State != dedup.StateCompleted && m.Record.LastError != "":
		m.Reason = m.Record.LastError
	case m.noRecord():
		m.Reason = m.Problem.Error()
	case m.State == dedup.StateCompleted, m.State == StateNone:
		m.Reason = Means(m.State)
	default:
		m.Reason = "no reason known"
	}
	if m.Class = classOf(m.Reason); note != "" {
		m.Reason += ": " + note
	}
}

// times is a number in words where it is one, so that a crash and a crash loop are two classes.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Freed is the class of events whose records an operator has freed.
var Freed = classOf("an operator freed it")

// Class groups reasons that differ in details only, such as an order's number.
type Class struct {
	ID   string // six hexadecimal digits of a SHA-256 of the reason with * for each detail
	Text string // its first 160 bytes
}

const (
	maxClass = 160 // bytes
	// maxClassed is how many bytes of a reason are read for its class: whoever sends a message decides how long a reason is, and of
	// 256 KiB a search takes 200 ms.
	maxClassed = 4 << 10
)

// details are the parts in which two reasons of one class differ: ARNs, times, UUIDs, quoted strings, hexadecimal numbers of
// eight digits or more, IDs of requests, and numbers. An apostrophe within a word quotes nothing. A number after a word for codes
// is found first, as the only group: it tells causes apart, and stays.
var details = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`(\b\w*(?:status|http|code|sqlstate|errno)(?:/[\d.]+)?\W{0,3}\b[0-9a-z]{1,9}\b|\berror \d{4} \([0-9a-z]{5}\))`,
	`\barn:[^\s"'` + "`" + `,;()]+`,
	`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z\b|[+-]\d\d:?\d\d)?`,
	`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`,
	`"(?:[^"\\]|\\.)*"`, "`[^`]*`", `\B'[^']*'\B`,
	`\b(?:0x)?[0-9a-f]{8,}\b`, `\bRequestID: [0-9a-z]+`,
	`\d+(?:[.,:]\d+)*`,
}, "|"))

func classOf(reason string) Class {
	reason = cut.Text(reason, maxClassed)
	var text strings.Builder
	end := 0
	for _, at := range details.FindAllStringSubmatchIndex(reason, -1) {
		text.WriteString(reason[end:at[0]])
		if end = at[1]; at[2] >= 0 || isStatus(reason, at[0], end) {
			text.WriteString(reason[at[0]:end])
		} else {
			text.WriteByte('*')
		}
	}
	text.WriteString(reason[end:])
	sum := sha256.Sum256([]byte(text.String()))
	return Class{ID: hex.EncodeToString(sum[:3]), Text: strings.Clone(cut.Text(text.String(), maxClass))} // kept for longer than the rest
}

// isStatus reports whether a detail is a number of three digits, such as HTTP's 404, beside blanks and marks.
func isStatus(reason string, from, to int) bool {
	if _, err := strconv.Atoi(reason[from:to]); err != nil || to-from != 3 {
		return false
	}
	apart := func(r rune, beside string) bool {
		return r == utf8.RuneError || unicode.IsSpace(r) || strings.ContainsRune(beside, r)
	}
	before, _ := utf8.DecodeLastRuneInString(reason[:from])
	after, _ := utf8.DecodeRuneInString(reason[to:])
	return apart(before, "([:=") && apart(after, ")].,:;")
}

// Cause is how a message came to the dead-letter queue.
type Cause string

// The causes.
const (
	CauseRejected       Cause = "rejected"         // by a host: its handler returned Reject, or failed at its last attempt
	CauseReceivesUsedUp Cause = "receives_used_up" // moved by SQS: it was received maxReceiveCount times
	CauseSent           Cause = "sent"             // sent by another program, or by a host whose attributes had no room
)

var causes = []Cause{CauseRejected, CauseReceivesUsedUp, CauseSent}
