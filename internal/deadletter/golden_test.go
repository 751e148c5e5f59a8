package deadletter

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/golden"
)

// goldenCopy is a message on the dead-letter queue, and the key that the event had before.
type goldenCopy struct {
	DedupID, Key string
	Attributes   map[string]sqsonce.Attribute
}

// The copies are those that the newest golden version sends. Those of every version, redriven, still have the event's key.
func TestGoldenCopies(t *testing.T) {
	t.Parallel()
	var written []goldenCopy
	for _, attrs := range []map[string]sqsonce.Attribute{
		nil,
		{sqsonce.AttrEventID: {Type: "String", String: "42"}, sqsonce.AttrEventSource: {Type: "String", String: "orders"}},
	} {
		m := message()
		m.Attributes = attrs
		key := keyOf(t, m)
		in, _ := Copy(fifoDLQ, m, key, "", sqsonce.Reject(errBad))
		c := goldenCopy{DedupID: *in.MessageDeduplicationId, Key: key, Attributes: map[string]sqsonce.Attribute{}}
		for name, a := range in.MessageAttributes {
			c.Attributes[name] = sqsonce.Attribute{Type: *a.DataType, String: aws.ToString(a.StringValue)}
		}
		written = append(written, c)
	}
	golden.Check(t, "copies.json", written)

	golden.Each(t, "copies.json", func(t *testing.T, old []goldenCopy) {
		for _, want := range old {
			key, _, err := (&sqsonce.Message{ID: "new", QueueARN: sourceARN + "2", Attributes: want.Attributes}).Key()
			if key != want.Key || err != nil {
				t.Errorf("key of %+v: got %q, %v", want, key, err)
			}
		}
	})
}
