package ops

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

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
	manual := must.Get(os.ReadFile("../../docs/operating.md"))(t)
	table := "| state | means | do |\n|---|---|---|\n"
	for _, s := range States() {
		table += fmt.Sprintf("| %s | %s | %s |\n", s, Means(s), Do(s))
	}
	if !strings.Contains(string(manual), table) {
		t.Errorf("docs/operating.md has not this table:\n%s", table)
	}
}
