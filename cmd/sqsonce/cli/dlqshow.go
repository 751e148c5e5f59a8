package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/classes"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

func (a *app) dlqShow() *cobra.Command {
	body := false
	c := a.command("show MESSAGE-ID", "Show one message of a dead-letter queue, and the record of its event", looking+`

SQS cannot be asked for one message: the queue is read as by dlq ls, up to --limit.`,
		"  sqsonce dlq show --queue orders --consumer billing --table dedup 11111111-1111-1111-1111-111111111111",
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error { return a.showMessage(ctx, args[0], body) })
	c.Flags().BoolVar(&body, "body", false, "also show the body")
	a.stockKeysFlag(c)
	a.limitFlag(c)
	return a.queueFlags(c)
}

func (a *app) showMessage(ctx context.Context, id string, body bool) error {
	listing, url, err := a.look(ctx)
	if listing.AsOf.IsZero() {
		return err
	}
	a.summary(listing, url)
	i := slices.IndexFunc(listing.Messages, func(m *ops.Message) bool { return m.ID == id })
	if i < 0 {
		return errors.Join(err, fail(exitFailed, "message %s is not among the %d that were read", id, len(listing.Messages)))
	}
	m := listing.Messages[i]
	if a.flags.json {
		return errors.Join(err, a.printJSON(struct {
			V       int         `json:"v"`
			Message messageJSON `json:"message"`
		}{1, newMessageJSON(m, body)}), unread(listing.Messages[i:i+1]))
	}
	pairs := []pair{
		{"message", m.ID}, {"state", string(m.State)}, {"means", ops.Means(m.State)}, {"do", ops.Do(m.State)},
		{"cause", string(m.Cause)}, {"class", m.Class.ID}, {"reason", m.Reason}, {"key", m.RecordKey},
		{"sent", a.when(m.SentAt)}, {"lost", a.when(m.LostAt)}, {"receives", strconv.Itoa(m.ReceiveCount)},
		{"source", m.QueueARN}, {"group", m.Group}, {"sequence", m.Sequence}, {"dedup id", m.DedupID}, {"trace", m.TraceHeader},
	}
	if m.Expired {
		pairs = append(pairs, pair{"expired", "its record may have expired, because the message is older than the retention of records"})
	}
	if m.Problem != nil {
		pairs = append(pairs, pair{"problem", m.Problem.Error()})
	}
	if m.Record != nil {
		pairs = append(pairs, a.recordPairs(ops.NewRecord(*m.Record, m.State))...)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		pairs = append(pairs, pair{"attribute " + name, attributeText(m.Attributes[name])})
	}
	pairs = append(pairs, pair{"body", fmt.Sprintf("%d bytes", len(m.Body))})
	if body && a.width == 0 {
		pairs[len(pairs)-1].value = m.Body
	}
	err = errors.Join(err, a.printPairs(pairs), unread(listing.Messages[i:i+1]))
	if body && a.width > 0 {
		_, printErr := fmt.Fprintf(a.out, "\n%s\n", escapedLines(m.Body))
		err = errors.Join(err, printErr)
	}
	return err
}

func attributeText(attr sqsonce.Attribute) string {
	if attr.Binary != nil {
		return base64.StdEncoding.EncodeToString(attr.Binary)
	}
	return attr.String
}

// listingJSON is what dlq ls prints.
type listingJSON struct {
	V        int             `json:"v"`
	Queue    string          `json:"queue"`
	AsOf     time.Time       `json:"as_of"`
	Total    int             `json:"total"`
	Read     int             `json:"read"`
	Hidden   int             `json:"hidden"`
	Behind   int             `json:"behind"`
	Complete bool            `json:"complete"`
	LostAt   time.Time       `json:"lost_at,omitzero"`
	Classes  []classes.Class `json:"classes"`
	Messages []messageJSON   `json:"messages,omitzero"`
}

func newListingJSON(l ops.Listing, url string, found []*ops.Message, messages bool) listingJSON {
	out := listingJSON{
		V: 1, Queue: url, AsOf: l.AsOf.UTC(), Total: l.Total, Read: len(l.Messages), Hidden: l.Hidden, Behind: l.Behind,
		Complete: l.Complete, LostAt: classes.LostAt(l.Messages).UTC(), Classes: classes.Of(found),
	}
	if messages {
		out.Messages = []messageJSON{}
		for _, m := range found {
			out.Messages = append(out.Messages, newMessageJSON(m, false))
		}
	}
	return out
}

// messageJSON is a message without its body, unless that was asked for.
type messageJSON struct {
	ID         string                   `json:"id"`
	State      dedup.RecordState        `json:"state"`
	Do         string                   `json:"do"`
	Cause      ops.Cause                `json:"cause"`
	Class      string                   `json:"class"`
	Reason     string                   `json:"reason"`
	Key        string                   `json:"key,omitempty"`
	Problem    string                   `json:"problem,omitempty"`
	Expired    bool                     `json:"expired,omitempty"`
	SentAt     time.Time                `json:"sent_at,omitzero"`
	LostAt     time.Time                `json:"lost_at,omitzero"`
	Receives   int                      `json:"receives"`
	Source     string                   `json:"source,omitempty"`
	Group      string                   `json:"group,omitempty"`
	Sequence   string                   `json:"sequence,omitempty"`
	DedupID    string                   `json:"dedup_id,omitempty"`
	Trace      string                   `json:"trace,omitempty"`
	Attributes map[string]attributeJSON `json:"attributes,omitempty"`
	Record     *ops.Record              `json:"record,omitempty"`
	BodyBytes  int                      `json:"body_bytes"`
	Body       string                   `json:"body,omitempty"`
}

type attributeJSON struct {
	Type   string `json:"type"`
	Value  string `json:"value,omitempty"`
	Binary []byte `json:"binary,omitempty"` // in base64
}

func newMessageJSON(m *ops.Message, body bool) messageJSON {
	out := messageJSON{
		ID: m.ID, State: m.State, Do: ops.Do(m.State), Cause: m.Cause, Class: m.Class.ID, Reason: m.Reason, Key: m.RecordKey,
		Expired: m.Expired, SentAt: m.SentAt.UTC(), LostAt: m.LostAt.UTC(), Receives: m.ReceiveCount, Source: m.QueueARN,
		Group: m.Group, Sequence: m.Sequence, DedupID: m.DedupID, Trace: m.TraceHeader, BodyBytes: len(m.Body),
		Attributes: newAttributesJSON(m.Attributes),
	}
	if m.Problem != nil {
		out.Problem = m.Problem.Error()
	}
	if m.Record != nil {
		r := ops.NewRecord(*m.Record, m.State)
		out.Record = &r
	}
	if body {
		out.Body = m.Body
	}
	return out
}

func newAttributesJSON(attributes map[string]sqsonce.Attribute) map[string]attributeJSON {
	out := map[string]attributeJSON{}
	for name, attr := range attributes {
		out[name] = attributeJSON{attr.Type, attr.String, attr.Binary}
	}
	return out
}
