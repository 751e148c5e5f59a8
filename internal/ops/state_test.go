package ops

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/values"
)

// Each state of a record is in the table, with what it means and what to do, and the manual has the table as it is.
func TestStates(t *testing.T) {
	t.Parallel()
	for _, s := range values.Of[dedup.RecordState](t, "../../dedup", "RecordState") {
		if Means(s) == "" || Do(s) == "" {
			t.Errorf("state %s: decide what it means for a message and what to do", s)
		}
	}
	for text, label := range map[string]string{"declined": "earlier error", sqsonce.Skip("test order").Error(): "last error"} {
		if f := NewRecord(dedup.Record{Lease: dedup.Lease{LastError: text}}, dedup.StateCompleted).Fields(); len(f) != 1 || f[0].Label != label {
			t.Errorf("the error of a completed record: %+v, want %s", f, label)
		}
	}
	manual := must.Get(os.ReadFile("../../docs/operating.md"))(t)
	table := "| state | means | do |\n|---|---|---|\n"
	for _, s := range States() {
		table += fmt.Sprintf("| %s | %s | %s |\n", s, Means(s), Do(s))
	}
	if !strings.Contains(string(manual), table) {
		t.Errorf("docs/operating.md has not this table:\n%s", table)
	}
}
