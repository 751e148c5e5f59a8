package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// Deferred is an inbox that stores messages first and handles them later. [Deferred.Receive] writes the message and
// acknowledges it, and a [Processor] runs the handler from the table. SQS has done its part within milliseconds, however
// long the handler runs and however often it fails. Visibility timeout, receive count and dead-letter queue don't matter
// any more. The table shows which events wait, and why.
//
// An event is stored once for as long as its row is retained, and its handler's effect in this database happens once.
type Deferred struct {
	store     *Store
	consumer  string
	keys      *dedup.Once
	retention time.Duration
	wait      time.Duration // for a connection, a lock, a commit
	validate  func(*sqsonce.Message) string
	errorText func(error) string
	stmts     func() deferredStatements
}

// NewDeferred returns a deferred inbox for the consumer. See [dedup.New] for the name and the keys. It uses the options
// Key, PayloadHash, TrustDedupID, Retention, CallTimeout and ErrorText only. Retention counts from the arrival, and again
// from when the event is done. Hooks aren't called. The error joins one [*sqsonce.OptionError] per argument that can't be
// used.
func NewDeferred(s *Store, consumer string, optFns ...func(*dedup.Options)) (*Deferred, error) {
	if s == nil {
		return nil, fieldError("store", "is nil")
	}
	keys, err := dedup.New(s, consumer, optFns...)
	if err != nil {
		return nil, err
	}
	o := dedup.Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	return &Deferred{
		store: s, consumer: consumer, keys: keys, validate: o.PayloadHash, errorText: o.ErrorText, stmts: sqldb.Statements(s.place, newDeferredStatements),
		retention: cmp.Or(o.Retention, host.DefaultRetention), wait: cmp.Or(o.CallTimeout, sqldb.CleanupTimeout),
	}, nil
}

// textOf is what is written of an attempt's error.
func (d *Deferred) textOf(err error) string { return cut.Cause(host.Described(d.errorText, err)) }

// Receive stores the message. It is a [sqsonce.Handler]. A nil error says that the event is stored, by this delivery or by
// an earlier one. It is safe to repeat: an event that is stored, pending or done, doesn't change.
//
// Receive rejects a message without an ID with [sqsonce.Reject]. If Options.PayloadHash is set, it also rejects a message
// that has the key of a stored event and another payload, with an error that matches [dedup.ErrPayloadMismatch]. Any other
// answer of the database matches [sqsonce.ErrUnavailable].
func (d *Deferred) Receive(ctx context.Context, m *sqsonce.Message) error {
	return d.ReceiveBatch(ctx, []*sqsonce.Message{m})[0]
}

// ReceiveBatch is Receive for several messages in one statement of at most 2 MiB, or of one message. [sqsonce.Batch] makes
// a handler of it. It returns an error for each message. Messages of one group are stored in the slice's order.
//
// If the database refuses a statement, ReceiveBatch repeats it in halves, down to one message. If the statement of a single
// message above 1 MiB fails while the database takes a small row, the error is a [*sqsonce.OptionError]. That is an ordinary failure,
// for example of a body above max_allowed_packet. A body of 16 MiB or more is refused on MySQL.
func (d *Deferred) ReceiveBatch(ctx context.Context, ms []*sqsonce.Message) []error {
	settle.Record(ctx)
	defer settle.Recorded(ctx)
	errs := make([]error, len(ms))
	rows := make([]row, 0, len(ms))
	index := make([]int, 0, len(ms)) // of each row's message
	for i, m := range ms {
		r, err := d.newRow(m)
		if err != nil {
			errs[i] = err
			continue
		}
		rows, index = append(rows, r), append(index, i)
	}
	if len(rows) == 0 {
		return errs
	}
	for i, err := range d.insert(ctx, rows) {
		errs[index[i]] = err
	}
	return errs
}

func (d *Deferred) insertBatch(ctx context.Context, rows []row) (inserted int64, err error) {
	text := d.stmts().insert(len(rows))
	var args []any
	for _, r := range rows {
		args = append(args, r.args(d)...)
	}
	err = d.store.retry(ctx, "receive", func(ctx context.Context) error {
		res, err := d.store.q.ExecContext(ctx, text, args...)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		inserted = n
		return err
	})
	return inserted, err
}

func (d *Deferred) insertOne(ctx context.Context, r row) error {
	text := d.stmts().insert(1)
	var written bool
	err := d.store.retry(ctx, "receive", func(ctx context.Context) (err error) {
		written, err = d.store.dialect.Write(ctx, d.store.db, text, r.args(d)...)
		return err
	})
	if err != nil || written || d.validate == nil {
		return err
	}
	e, err := d.Inspect(ctx, r.key)
	switch {
	case errors.Is(err, dedup.ErrNotFound):
		return sqsonce.Unavailable(fmt.Errorf("sqlstore: receive: the row of key %q was deleted before its payload was compared", r.key))
	case err != nil:
		return err
	case d.validate(e.Message) != d.validate(r.message):
		return sqsonce.Reject(fmt.Errorf("%w: %s", dedup.ErrPayloadMismatch, r.key))
	}
	return nil
}

// row is a message that is about to be stored.
type row struct {
	key        string
	message    *sqsonce.Message
	attributes []byte
}

// envelope is the content of the column attributes: the message's own attributes, and its properties in SQS.
type envelope struct {
	Attributes      map[string]sqsonce.Attribute `json:"attributes,omitempty"`
	QueueARN        string                       `json:"queueArn,omitempty"`
	Group           string                       `json:"group,omitempty"`
	Sequence        string                       `json:"sequence,omitempty"`
	DedupID         string                       `json:"dedupId,omitempty"`
	TraceHeader     string                       `json:"traceHeader,omitempty"`
	SentAt          time.Time                    `json:"sentAt,omitzero"`
	FirstReceivedAt time.Time                    `json:"firstReceivedAt,omitzero"`
	Envelope        sqsonce.Envelope             `json:"envelope,omitzero"`
}

func (d *Deferred) newRow(m *sqsonce.Message) (row, error) {
	key, err := d.keys.Key(m)
	if err != nil {
		return row{}, err
	}
	if err := checkText("key", key, maxKey); err != nil {
		return row{}, err
	}
	if most := d.store.dialect.LargestBlob(); len(m.Body) > most {
		return row{}, fmt.Errorf("sqlstore: receive: key %q: %w", key, fieldError("Message.Body", fmt.Sprintf("has %d bytes, the table keeps %d", len(m.Body), most)))
	}
	attributes, err := json.Marshal(envelope{
		Attributes: m.Attributes, QueueARN: m.QueueARN, Group: m.Group, Sequence: m.Sequence, DedupID: m.DedupID,
		TraceHeader: m.TraceHeader, SentAt: m.SentAt, FirstReceivedAt: m.FirstReceivedAt, Envelope: m.Envelope,
	})
	if err != nil {
		return row{}, fmt.Errorf("sqlstore: receive: attributes of key %q: %w", key, err)
	}
	return row{key: key, message: m, attributes: attributes}, nil
}

// args are the arguments of the INSERT for one row. The columns event_id, source and event_type are for operators' queries
// and may be cut; attributes holds the whole values.
func (r row) args(d *Deferred) []any {
	m := r.message
	_, event, _ := strings.Cut(r.key, "#")
	return []any{
		r.key, d.consumer, event,
		columnText(m.Attributes[sqsonce.AttrEventSource].String), columnText(m.Attributes[sqsonce.AttrEventType].String),
		orderGroup(m), columnText(m.ID), []byte(m.Body), string(r.attributes), d.retention.Milliseconds(),
	}
}

// orderGroup is the group in which messages are handled one after the other, or "". Only a FIFO queue's group orders: on a
// standard queue, whose messages have no sequence number, the group is a fair queue's tenant.
func orderGroup(m *sqsonce.Message) string {
	if m.Sequence == "" {
		return ""
	}
	return m.Group
}

func columnText(text string) string { return cut.Text(text, 128) }

// decode restores the message of a row. Its receive count is the row's attempts.
func decode(messageID string, payload []byte, attributes string, attempts int) (*sqsonce.Message, error) {
	var e envelope
	if err := json.Unmarshal([]byte(attributes), &e); err != nil {
		return nil, fmt.Errorf("sqlstore: inbox: attributes of message %s: %w", messageID, err)
	}
	return &sqsonce.Message{
		ID: messageID, Body: string(payload), Attributes: e.Attributes, Group: e.Group, Sequence: e.Sequence,
		DedupID: e.DedupID, ReceiveCount: attempts, SentAt: e.SentAt, FirstReceivedAt: e.FirstReceivedAt,
		QueueARN: e.QueueARN, TraceHeader: e.TraceHeader, Envelope: e.Envelope,
	}, nil
}

// The statuses of a row, other than DONE.
const (
	pending = "PENDING"
	parked  = "PARKED"
)

// deferredStatements are the statements of a deferred inbox.
type deferredStatements struct {
	dialect sqldb.Dialect
	// For operators.
	inspect, parked, unpark, count string
	// An attempt: see attemptRow.
	mark, markDone, attempt string
	// How an attempt ends that is not done. Each is refused if another claim has the row by then.
	delay, unavailable, postpone, park, undo string
	// rewind makes events due that a clock that was ahead has put off: see Processor.rewind.
	rewind string
}

func newDeferredStatements(d sqldb.Dialect) deferredStatements {
	const (
		entries = "SELECT " + entryColumns + " FROM {inbox} WHERE consumer = ? AND "
		ifOwned = " WHERE seq = ? AND owner = ? AND status = 'PENDING'"
	)
	sql := d.SQL
	return deferredStatements{
		dialect: d,
		inspect: sql(entries + "id = ?"),
		parked:  sql(entries + "status = 'PARKED' ORDER BY seq LIMIT ?"),
		unpark: sql("UPDATE {inbox} SET status = 'PENDING', attempts = 0, owner = '', lease_until = 0, due_at = {now}" +
			" WHERE consumer = ? AND id = ? AND status = 'PARKED'"),
		count: sql("SELECT COALESCE(SUM(CASE status WHEN 'PENDING' THEN 1 ELSE 0 END), 0)," +
			" COALESCE(SUM(CASE status WHEN 'PARKED' THEN 1 ELSE 0 END), 0)," +
			" COALESCE(MIN(CASE status WHEN 'PENDING' THEN received_at END), 0), {now}" +
			" FROM {inbox} WHERE consumer = ? AND status <> 'DONE'"),

		mark: sql("UPDATE {inbox} SET lease_until = " + d.Returned("{greatest}(lease_until + 1, {now} + ?)") +
			ifOwned + " AND lease_until <> ?" + d.Returning("lease_until")),
		markDone: sql("UPDATE {inbox} SET error = ?, lease_until = 0, expires_at = {greatest}(expires_at, {now} + ?)," +
			" status = 'DONE'" +
			ifOwned + " AND lease_until = ?{commits}"),
		attempt: sql("SELECT status, owner, lease_until FROM {inbox} WHERE seq = ?"),

		rewind: sql("UPDATE {inbox} SET due_at = {past}, received_at = CASE WHEN received_at > {past} THEN {past} ELSE received_at END" +
			" WHERE consumer = ? AND status = 'PENDING' AND due_at > {past} + ? AND (attempts = 0 AND owner = '' OR received_at > {past})"),
		delay:       sql("UPDATE {inbox} SET error = ?, lease_until = 0, due_at = {now} + ?" + ifOwned),
		unavailable: sql("UPDATE {inbox} SET error = ?, lease_until = 0, due_at = {now} + ?, attempts = attempts - 1, owner = ''" + ifOwned),
		postpone:    sql("UPDATE {inbox} SET lease_until = 0, due_at = {now} + ?, attempts = attempts - 1" + ifOwned),
		park:        sql("UPDATE {inbox} SET error = ?, lease_until = 0, status = 'PARKED'" + ifOwned),
		undo:        sql("UPDATE {inbox} SET attempts = attempts - 1, lease_until = 0, owner = '', due_at = received_at" + ifOwned),
	}
}

func (s deferredStatements) insert(rows int) string {
	const values = "(?, ?, ?, ?, ?, ?, ?, ?, ?, {now}, 'PENDING', {now}, {now} + ?)"
	return s.dialect.SQL("INSERT INTO {inbox} (id, consumer, event_id, source, event_type, group_id, message_id, payload," +
		" attributes, received_at, status, due_at, expires_at) VALUES " + values + strings.Repeat(", "+values, rows-1) + " {ignore}")
}
