package endpoint

import (
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
		"one behind":       {[]in{{1, "a"}, {0, "a"}, {2, "b"}, {3, "a"}}, Order{Inverted: 1}},
		"two behind one":   {[]in{{3, "a"}, {0, "a"}, {1, "a"}, {2, "b"}}, Order{Inverted: 2}},
		"twice":            {[]in{{0, "a"}, {1, "a"}, {0, "a"}, {2, "b"}, {3, "a"}}, Order{Doubled: 1}},
		"missing":          {[]in{{0, "a"}, {3, "a"}}, Order{Missing: 2}},
		"not of the bench": {[]in{{0, "a"}, {1, "a"}, {2, "b"}, {3, "a"}, {99, "a"}}, Order{}},
	} {
		var queue []memsqs.QueuedMessage
		for _, m := range c.queue {
			queue = append(queue, memsqs.QueuedMessage{Body: job.Body(m.n, 100), Group: m.group})
		}
		if got := order(queue, 4); got != c.want {
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

func TestEvents(t *testing.T) {
	t.Parallel()
	s := &server{cfg: Config{Events: 100, Resend: 20}}
	seen := map[int]int{}
	for _, n := range s.events() {
		seen[n]++
	}
	twice := 0
	for n := range 100 {
		if seen[n] == 0 {
			t.Errorf("event %d is not sent", n)
		}
		if seen[n] == 2 {
			twice++
		}
	}
	if twice != 3 { // 0, 20 and 40, each when the fiftieth after it is sent
		t.Errorf("%d events are sent twice, want 3", twice)
	}
	if b := batch(64 << 10); b != 10 {
		t.Errorf("batches of %d messages of 64 KB, want 10", b)
	}
	if b := batch(512 << 10); b != 1 {
		t.Errorf("batches of %d messages of 512 KB, want 1", b)
	}
}
