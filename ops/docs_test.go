package ops_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/ops"
)

// The manual has the table of states as it is.
func TestStatesInTheManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| state | means | do |\n|---|---|---|\n"
	for _, s := range ops.States() {
		table += fmt.Sprintf("| %s | %s | %s |\n", s, s.Means(), s.Do())
	}
	if !strings.Contains(string(manual), table) {
		t.Errorf("docs/operating.md has not this table:\n%s", table)
	}
}
