package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/ops"
)

// planFlag is for who shows a dry run to somebody, and then does what was shown: the console.
func (a *app) planFlag(c *cobra.Command) {
	c.Flags().Var(&a.flags.plan, "plan", "refuse where anything has changed since the dry run with --json that had this `hash`")
	c.MarkFlagsMutuallyExclusive("plan", "dry-run")
}

// planHash is what hashOf returns. "" is no plan; a flag is never that: a variable that is not set is no consent.
type planHash string

func (h *planHash) Set(s string) error {
	if sum, err := hex.DecodeString(s); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("%q is no hash of a dry run", s)
	}
	*h = planHash(s)
	return nil
}

func (h *planHash) Type() string   { return "hash" }
func (h *planHash) String() string { return string(*h) }

// asPlanned compares a plan with that of --plan.
func (a *app) asPlanned(hash planHash) error {
	if a.flags.plan != "" && a.flags.plan != hash {
		return fail(exitRefused, "changed since it was looked at: list again; nothing was changed")
	}
	return nil
}

// hashOf is the SHA-256 of parts, which JSON keeps apart.
func hashOf(parts ...any) planHash {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(parts); err != nil {
		panic(fmt.Sprintf("sqsonce: a plan's hash: %v", err)) // strings and numbers
	}
	return planHash(hex.EncodeToString(sum.Sum(nil)))
}

// owners has whose the records of messages were when a dry run read them, by message ID.
type owners map[string]owner

type owner struct {
	name  string
	fence int64
}

func (o owners) add(m *ops.Message) {
	if m.Record != nil {
		o[m.ID] = owner{m.Record.Owner, m.Record.Fence}
	}
}

// hash covers what is to be done with each message that is meant, and whose its record is: one in the same state may be of another
// try by now.
func (p *queuePlan) hash(url string, report ops.Report, of owners) planHash {
	lines := map[string]any{}
	for _, res := range report.Results {
		if why(res) == whys[0].why { // not selected
			continue
		}
		o := of[res.ID]
		lines[res.ID] = []any{res.Action, why(res), res.State, res.Class.ID, res.Group, res.RecordKey, res.Destination, o.name, o.fence}
	}
	return hashOf(p.Operation, url, lines) // JSON sorts by ID
}

// hash covers whose the record is, and what is to become of it.
func (p *plan) hash() planHash { return hashOf(p.verb, p.Key, p.state, p.Owner, p.Fence, p.after) }
