package fifo_test

import (
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/golden"
	"github.com/sqsonce/sqsonce/internal/must"
)

// goldenMessage is a published message, and the key that its consumer finds.
type goldenMessage struct {
	Body, Group, DedupID, Key string
	Attributes                map[string]sqsonce.Attribute
}

// The messages are those that the newest golden version publishes. Those of every version still have their keys, and an event
// that an earlier version published is the same event to SQS.
func TestGoldenMessages(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var written []goldenMessage
		for _, id := range []string{"ord-42/v3", "no dedup ID, since it has blanks"} {
			e := fifo.Event{ID: id, Group: "customer-7", Type: "order.created", Body: `{"id":"ord-42"}`, Attributes: map[string]sqsonce.Attribute{
				"picture": {Type: "Binary.png", Binary: []byte{0, 255}},
				"cents":   {Type: "Number", String: "1200"},
			}}
			must.Get(x.publisher().Publish(x.Context(), e))(x)
		}
		for _, received := range x.receive(x.url, 2) {
			m := message(x.url, received)
			key, _, err := m.Key()
			if err != nil {
				x.Fatal(err)
			}
			written = append(written, goldenMessage{Body: m.Body, Group: m.Group, DedupID: m.DedupID, Key: key, Attributes: m.Attributes})
		}
		golden.Check(x.T, "messages.json", written)
	})
	golden.Each(t, "messages.json", func(t *testing.T, old []goldenMessage) {
		for _, want := range old {
			key, _, err := (&sqsonce.Message{Attributes: want.Attributes}).Key()
			if key != want.Key || err != nil {
				t.Errorf("key of %+v: got %q, %v", want, key, err)
			}
			dedupID, err := fifo.DedupID(want.Attributes[sqsonce.AttrEventSource].String, want.Attributes[sqsonce.AttrEventID].String)
			if dedupID != want.DedupID || err != nil {
				t.Errorf("deduplication ID of %+v: got %q, %v", want, dedupID, err)
			}
		}
	})
}
