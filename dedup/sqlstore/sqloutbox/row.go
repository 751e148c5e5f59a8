package sqloutbox

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// The values of the column parked.
const (
	halted  = "HALT"
	skipped = "SKIP"
)

// row is an event's row, and the database's clock when it was read.
type row struct {
	seq                                                     int64
	group, id, source, kind, body, attributes, trace, error string
	parked                                                  string
	created, now                                            int64
}

// columns are the columns that readRow reads. MySQL returns texts as the bytes that were written, whatever character set the
// connection has.
const columns = "seq, aggregateid, {raw}id{/raw}, source, {raw}type{/raw}, {raw}payload{/raw}, {raw}attributes{/raw}," +
	" {raw}trace{/raw}, {raw}error{/raw}, parked, created_at, {now}"

func readRow(found sqldb.Row) (r row, err error) {
	err = found.Scan(&r.seq, &r.group, &r.id, &r.source, &r.kind, &r.body, &r.attributes, &r.trace, &r.error, &r.parked, &r.created, &r.now)
	return r, err
}

// entry returns the event, or an [outbox.ErrBroken] of its group.
func (r row) entry() (outbox.Entry, error) {
	parked, err := policyOf(r.parked)
	if err != nil {
		return outbox.Entry{}, r.broken(err)
	}
	attributes, err := decodeAttributes(r.attributes)
	if err != nil {
		return outbox.Entry{}, r.broken(err)
	}
	return outbox.Entry{
		Event: fifo.Event{
			ID: r.id, Group: r.group, Body: r.body, Type: r.kind, TraceHeader: r.trace, Attributes: attributes,
		},
		Source: r.source, Seq: r.seq, Age: age(r.now - r.created), Parked: parked, Reason: r.error,
	}, nil
}

func (r row) broken(err error) error {
	return &outbox.GroupError{Group: r.group, Seq: r.seq, Err: fmt.Errorf("%w: %w", outbox.ErrBroken, err)}
}

func age(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func policyOf(parked string) (outbox.RefusedPolicy, error) {
	switch parked {
	case "":
		return 0, nil
	case halted:
		return outbox.OnRefusedHalt, nil
	case skipped:
		return outbox.OnRefusedSkip, nil
	default:
		return 0, fmt.Errorf("parked is %.16q, must be HALT, SKIP or empty", parked)
	}
}

// attribute is the form of an attribute in the column attributes.
type attribute struct {
	Type   string `json:"type"`
	String string `json:"string,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

func encodeAttributes(all map[string]sqsonce.Attribute) (string, error) {
	stored := make(map[string]attribute, len(all))
	for name, a := range all {
		stored[name] = attribute(a)
	}
	text, err := json.Marshal(stored)
	return string(text), err
}

func decodeAttributes(text string) (map[string]sqsonce.Attribute, error) {
	var stored map[string]attribute
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("attributes: %w", err)
	}
	if len(stored) == 0 {
		return nil, nil
	}
	all := make(map[string]sqsonce.Attribute, len(stored))
	for name, a := range stored {
		all[name] = sqsonce.Attribute(a)
	}
	return all, nil
}
