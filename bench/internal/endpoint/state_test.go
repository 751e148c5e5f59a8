package endpoint

import (
	"encoding/json"
	"testing"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	type in struct {
		n     int
		group string
	}
	for name, c := range map[string]struct {
		queue []in
		want  Order
	}{
		"in order":         {[]in{{0, "a"}, {1, "a"}, {2, "b"}, {3, "a"}}, Order{}},
		"groups mixed":     {[]in{{2, "b"}, {0, "a"}, {1, "a"}, {3, "a"}}, Order{}},
		"one behind":       {[]in{{1, "a"}, {0, "a"}, {2, "b"}, {3, "a"}}, Order{OutOfOrder: 1}},
		"two behind one":   {[]in{{3, "a"}, {0, "a"}, {1, "a"}, {2, "b"}}, Order{OutOfOrder: 2}},
		"twice":            {[]in{{0, "a"}, {1, "a"}, {0, "a"}, {2, "b"}, {3, "a"}}, Order{Doubled: 1}},
		"missing":          {[]in{{0, "a"}, {3, "a"}}, Order{Missing: 2}},
		"not of the bench": {[]in{{0, "a"}, {1, "a"}, {2, "b"}, {3, "a"}, {99, "a"}}, Order{}},
	} {
		var queue []memsqs.QueuedMessage
		for _, m := range c.queue {
			queue = append(queue, memsqs.QueuedMessage{Body: job.Body(m.n, 100), Group: m.group})
		}
		if got := orderOf(queue, 4); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestWriteUnits(t *testing.T) {
	t.Parallel()
	got := writeUnits([]fault.Call{{Op: "UpdateItem", Units: 2}, {Op: "GetItem", Units: 1}, {Op: "BatchExecuteStatement", Units: 25}})
	if got != 27 {
		t.Errorf("got %v write units, want 27: reads are not writes", got)
	}
}

func TestAwaitEmpty(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg   Config
		empty bool
	}{
		"empty":       {Config{}, true},
		"full":        {Config{Events: 1, BodySize: 100}, false},
		"not yet fed": {Config{Events: 1, BodySize: 100, FeedLater: true}, false}, // an empty queue is not the end while more is to come
	} {
		s, err := start(t.Context(), c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.awaitEmpty(t.Context(), json.RawMessage("1000000"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.depth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e := got.(Emptied); e.Empty != c.empty {
			t.Errorf("%s: got %+v with %d messages, want empty: %v", name, e, n, c.empty)
		}
	}
}
