package sqsonce_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/eventkey"
	"github.com/sqsonce/sqsonce/internal/golden"
)

// goldenKey is a message, and its keys.
type goldenKey struct {
	ID, QueueARN, Group, DedupID, Body string
	Attributes                         map[string]sqsonce.Attribute

	Key, Source, DedupKey string
}

func (g goldenKey) keys(t *testing.T) goldenKey {
	t.Helper()
	m := &sqsonce.Message{ID: g.ID, QueueARN: g.QueueARN, Group: g.Group, DedupID: g.DedupID, Body: g.Body, Attributes: g.Attributes}
	err := sqsonce.OpenEnvelope(func(_ context.Context, m *sqsonce.Message) error {
		key, source, err := m.Key()
		g.Key, g.Source = key, source.String()
		g.DedupKey, _ = eventkey.OfDedupID(m.QueueARN, m.Group, m.DedupID)
		return err
	})(t.Context(), m)
	if err != nil {
		t.Fatalf("%+v: %v", g, err)
	}
	return g
}

// A message has the key that every version made of it: another key runs an event again that was completed before the update.
func TestGoldenKeys(t *testing.T) {
	t.Parallel()
	text := func(pairs ...string) map[string]sqsonce.Attribute {
		attrs := map[string]sqsonce.Attribute{}
		for i := 0; i < len(pairs); i += 2 {
			attrs[pairs[i]] = sqsonce.Attribute{Type: "String", String: pairs[i+1]}
		}
		return attrs
	}
	var keys []goldenKey
	for _, attrs := range []map[string]sqsonce.Attribute{
		nil,
		text(sqsonce.AttrEventKey, "moved by hand"),
		text(sqsonce.AttrEventID, "order-42"),
		text(sqsonce.AttrEventID, "no dedup ID"),
		text(sqsonce.AttrEventSource, "orders", sqsonce.AttrEventID, "order-42/v3"),
		text(sqsonce.AttrEventSource, "a|b", sqsonce.AttrEventID, "c"),
		text(sqsonce.AttrEventSource, "sqs-message", sqsonce.AttrEventID, "c"),
		text(sqsonce.AttrEventSource, "zamówienia", sqsonce.AttrEventID, strings.Repeat("x", 200)),
		text("specversion", "1.0", "id", "a", "source", "/orders", "type", "created"),
		text("ce-specversion", "1.0", "ce-id", "b", "ce-source", "/orders", "ce-type", "created"),
	} {
		g := goldenKey{ID: "6f2c", QueueARN: "arn:aws:sqs:us-east-1:1:orders.fifo", Group: "customer 7", DedupID: "d", Body: "{}", Attributes: attrs}
		keys = append(keys, g.keys(t))
	}
	for _, body := range []string{
		`{"specversion":"1.0","id":"é","source":"/orders","type":"created","data":{}}`, inSNS("{}"), inEventBridge("{}"), inSNS(inEventBridge("{}")),
	} {
		keys = append(keys, goldenKey{ID: "6f2c", QueueARN: "arn:aws:sqs:us-east-1:1:orders", Body: body}.keys(t))
	}
	golden.Check(t, "keys.json", keys)

	golden.Each(t, "keys.json", func(t *testing.T, old []goldenKey) {
		for _, want := range old {
			if got := want.keys(t); got.Key != want.Key || got.Source != want.Source || got.DedupKey != want.DedupKey {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		}
	})
}
