package sqloutbox

import (
	"context"
	"strings"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// deleteRows limits the events of one statement.
const deleteRows = 500

// Delete implements [outbox.Store], with one statement for up to 500 events. It names each event by its number, its group and
// its ID, because another event may have the same number after a failover that has lost commits.
func (o *Outbox) Delete(ctx context.Context, es []outbox.Entry) (left []outbox.Entry, err error) {
	for len(es) > 0 {
		some := es[:min(len(es), deleteRows)]
		if err := o.deleteSome(ctx, some); err != nil {
			return es, err
		}
		es = es[len(some):]
	}
	return nil, nil
}

func (o *Outbox) deleteSome(ctx context.Context, es []outbox.Entry) error {
	err := o.run(ctx, "delete", func(ctx context.Context) error {
		text, args := o.deletion(es)
		_, err := o.q.ExecContext(ctx, text, args...)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range es {
		o.claims.deleted(e.Group, e.Seq)
	}
	return nil
}

// deletion is the statement that deletes the events.
func (o *Outbox) deletion(es []outbox.Entry) (text string, args []any) {
	args = make([]any, 0, 4*len(es)+1)
	for _, e := range es {
		args = append(args, e.Seq)
	}
	args = append(args, o.name)
	for _, e := range es {
		args = append(args, e.Seq, e.Group, e.ID)
	}
	const event = "(?, ?, {bytes})"
	// The numbers alone come first, because no planner searches its index for rows of three values.
	text = o.place.Dialect().SQL("DELETE FROM {outbox} WHERE seq IN (" + list(len(es)) + ") AND aggregatetype = ?" +
		" AND (seq, aggregateid, {raw}id{/raw}) IN ({row list}" + event + strings.Repeat(", "+event, len(es)-1) + ")")
	return text, args
}
