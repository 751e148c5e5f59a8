package node_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/sqsonce/sqsonce/bench/node"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestWithoutNode(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := node.Install(t.Context()); !errors.Is(err, testserver.ErrNoNode) {
		t.Errorf("got %v, want ErrMissing", err)
	}
}

// With a range another version would be measured each time.
func TestVersionsAreExact(t *testing.T) {
	t.Parallel()
	raw := must.Get(os.ReadFile("package.json"))(t)
	var p struct{ Dependencies map[string]string }
	must.Do(t, json.Unmarshal(raw, &p))
	for name, version := range p.Dependencies {
		if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
			t.Errorf("%s has version %q, want an exact one", name, version)
		}
	}
	if got := p.Dependencies["sqs-consumer"]; got != "15.0.3" {
		t.Errorf("sqs-consumer %s, want 15.0.3", got)
	}
}
