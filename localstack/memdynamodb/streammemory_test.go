package memdynamodb

import (
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// TestStreamMemory: a stream that nobody reads keeps a day's records, and a stream that is disabled again and again goes too.
func TestStreamMemory(t *testing.T) {
	t.Parallel()
	s := New()
	defer s.Close()
	tb := &table{srv: s, at: time.Unix(1e9, 0), tableState: tableState{keys: schema{partition: "id"}}}
	tb.enableStream("KEYS_ONLY")
	for i := range 1000 {
		tb.at = tb.at.Add(time.Hour)
		item := attr.Map(nil).With("id", attr.String(rune(i)))
		tb.stream.add(tb.keys.of, tb.keys.at(item), nil, item, nil)
	}
	if n := len(tb.stream.shards[0].records); n != 24 {
		t.Errorf("%d records of the last 24 hours are kept, want 24", n)
	}
	for range 1000 {
		tb.at = tb.at.Add(time.Hour)
		tb.disableStream()
		tb.enableStream("KEYS_ONLY")
	}
	if n := len(s.streams); n != 25 {
		t.Errorf("%d streams are kept, want the enabled one and the 24 of a day", n)
	}
}
