package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Deferred is an inbox that stores messages first and handles them later: [Deferred.Receive] writes the message and
// acknowledges it, and a [Processor] runs the handler from the table. SQS is then done with the message within
// milliseconds, however long its handler takes or however often it fails: no visibility timeout, no receive count and
// no dead-letter queue are in play any more, and the table can be asked what is waiting, and why.
//
// An event is stored once for as long as its row is retained, and its handler's effect in this database is there once.
type Deferred struct {
	store     *Store
	consumer  string
	keys      *dedup.Once
	retention time.Duration
	wait      time.Duration
	validate  func(*sqsonce.Message) string
	text      deferredTexts
}

// defaultRetention is that of dedup.Options.
const defaultRetention = 29 * 24 * time.Hour

// NewDeferred returns a deferred inbox for the consumer: see [dedup.New] for the name and the keys. Of the options it uses
// Key, Validate, TrustDedupID, Retention and CallTimeout. Retention counts from the arrival, and again from the moment at
// which the event is done.
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
		store: s, consumer: consumer, keys: keys, validate: o.Validate, text: newDeferredTexts(s.dialect),
		retention: cmp.Or(o.Retention, defaultRetention), wait: cmp.Or(o.CallTimeout, ownTimeout),
	}, nil
}

// Receive stores the message, and is a [sqsonce.Handler]. A nil error says that the event is stored, by this delivery or
// by an earlier one. It is safe to repeat: an event that is there, waiting or done, stays as it is.
//
// A message without an ID is a [sqsonce.Reject]; so is, where Options.Validate is set, one with the key and another
// payload than the stored event: it matches [dedup.ErrPayloadMismatch].
func (d *Deferred) Receive(ctx context.Context, m *sqsonce.Message) error {
	return d.ReceiveBatch(ctx, []*sqsonce.Message{m})[0]
}

// ReceiveBatch is Receive for several messages in one statement; [sqsonce.Batch] makes a handler of it. Messages of one
// group are stored in the slice's order. Where the statement fails, all of its messages do.
func (d *Deferred) ReceiveBatch(ctx context.Context, ms []*sqsonce.Message) []error {
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

func (d *Deferred) newRow(m *sqsonce.Message) (row, error) {
	key, err := d.keys.Key(m)
	if err != nil {
		return row{}, err
	}
	if err := checkText("key", key, maxKey); err != nil {
		return row{}, err
	}
	return newRow(key, m)
}

// insert stores the rows, and returns an error for each.
func (d *Deferred) insert(ctx context.Context, rows []row) []error {
	errs := make([]error, len(rows))
	var inserted int64
	err := d.store.use(ctx)
	if err == nil {
		inserted, err = d.insertTogether(ctx, rows)
	}
	together := err == nil
	for i, r := range rows {
		switch {
		case together && (d.validate == nil || inserted == int64(len(rows))):
		case together || d.store.dialect.classify(err) == duplicate:
			// MySQL refuses a whole statement for one duplicate. And who compares payloads wants to know which they were.
			errs[i] = d.insertOne(ctx, r)
		default:
			errs[i] = explain(d.store.dialect, "receive", err)
		}
	}
	return errs
}

func (d *Deferred) insertTogether(ctx context.Context, rows []row) (inserted int64, err error) {
	text := d.text.insert(len(rows))
	var args []any
	for _, r := range rows {
		args = append(args, r.args(d)...)
	}
	err = d.store.retry(ctx, "receive", func(ctx context.Context) error {
		res, err := d.store.db.ExecContext(ctx, text, args...)
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
	text := d.text.insert(1)
	var written bool
	err := d.store.retry(ctx, "receive", func(ctx context.Context) (err error) {
		written, err = d.store.dialect.write(ctx, d.store.db, text, r.args(d)...)
		return err
	})
	if err != nil || written || d.validate == nil {
		return err
	}
	e, err := d.Inspect(ctx, r.key)
	switch {
	case errors.Is(err, dedup.ErrNotFound):
		return fmt.Errorf("sqlstore: receive: the row of %s was deleted meanwhile", r.key)
	case err != nil:
		return err
	case d.validate(e.Message) != d.validate(r.message):
		return sqsonce.Reject(fmt.Errorf("%w: %s", dedup.ErrPayloadMismatch, r.key))
	}
	return nil
}
