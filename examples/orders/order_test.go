package orders

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

func TestReadFile(t *testing.T) {
	events := must.Get(ReadFile("orders.jsonl"))(t)
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ID] = true
		var sum int64
		for _, l := range e.Lines {
			sum += int64(l.Quantity) * l.Price
		}
		if e.Type == "order.placed" && e.Amount != sum {
			t.Errorf("%s: amount %d, its lines add up to %d", e.ID, e.Amount, sum)
		}
	}
	if len(events) != 5000 || len(ids) != 5000 {
		t.Errorf("%d events with %d IDs, want 5000 each", len(events), len(ids))
	}

	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	must.Do(t, os.WriteFile(broken, []byte("{}\n{\"id\":1}\n"), 0o600))
	if _, err := ReadFile(broken); err == nil || !strings.Contains(err.Error(), "broken.jsonl:2") {
		t.Errorf("got %v, want an error that names line 2", err)
	}
}
