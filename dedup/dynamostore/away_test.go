package dynamostore

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// After a call that no attempt answered dedup's calls are one request each, until one is answered.
func TestRetriesAfterAnOutage(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		l := b.acquire(s, claim("a"))
		calls := func(rule ...fault.Rule) int {
			b.faults(rule...)
			sent := len(b.srv.Calls())
			_, _ = s.Renew(t.Context(), l, lease)
			return len(b.srv.Calls()) - sent
		}
		reset := fault.Rule{Prob: 1, Do: fault.Reset}
		for i, want := range []int{maxAttempts, 1, 1} {
			if got := calls(reset); got != want {
				t.Errorf("renewal %d of an outage: %d requests, want %d", i+1, got, want)
			}
		}
		if got := calls(); got != 1 {
			t.Errorf("the outage is over: %d requests, want 1", got)
		}
		if got := calls(reset); got != maxAttempts {
			t.Errorf("the next outage: %d requests, want %d", got, maxAttempts)
		}
	})
}

// broken are the conditions of the protocol, each with one clause that is made true for every record.
var broken = []struct {
	name   string
	kind   string // of the packets that are changed
	clause string
	within string // the part of the condition that has the clause
	scope  string // of the schedules that find it
}{
	{"acquire, own retry with any values", "acquire", "#in_progress_expiration=:until AND #fence=:fence", isOwnRetry, "completion"},
	{"acquire, own retry of a completed record", "acquire", "#status=:p", isOwnRetry, "completion"},
	{"acquire, own retry after a renewal", "acquire", "#in_progress_expiration=:until", isOwnRetry, "completion"},
	{"acquire, own retry by anyone", "acquire", "#owner=:me", isOwnRetry, "completion"},
	{"acquire, a live lease", "acquire", "#in_progress_expiration < :now", isOver, "completion"},
	{"acquire, a fence that does not grow", "acquire", fenceGrows, isOver, "commit"},
	{"acquire, a retained record", "acquire", "#expiration < :nows", isRetentionOver, "completion"},
	{"renew, another's", "renew", "#owner=:me", "", "completion"},
	{"renew, a completed record", "renew", "#status=:p", "", "a lost packet"},
	{"renew, a released lease", "renew", "#in_progress_expiration BETWEEN :one AND :until", "", "completion"},
	{"complete, another's", "complete", isMine, "", "completion"},
	{"release, another's", "release", "#owner=:me", "", "completion"},
	{"release, a completed record", "release", "#status=:p", "", "commit"},
	{"commit, another's", "commit", "#owner=:me", "", "commit"},
	{"commit, a completed record", "commit", "#status=:p", "", "commit"},
	{"commit, a released record", "commit", "#in_progress_expiration > :zero", "", "commit"},
	{"reopen, another's", "reopen", "#owner=:seen AND #fence=:seenfence", isSeen, "an operator"},
	{"reopen, completed meanwhile", "reopen", "#status=:seenstatus", isSeen, "an operator"},
	{"reopen, a live lease", "reopen", isReopenable, "", "an operator"},
	{"delete, a live lease", "delete", "(#in_progress_expiration < :now)", "", "deletion"},
}

// either is always true, and still has the placeholders of the clause: DynamoDB refuses unused ones.
func either(clause string) string {
	if !strings.HasPrefix(clause, "(") || !strings.HasSuffix(clause, ")") {
		clause = "(" + clause + ")"
	}
	return "(" + clause + " OR NOT " + clause + ")"
}

// breaker changes the conditions of the packets of one kind, and counts them.
type breaker struct {
	kind, clause, within string
	hits                 int
}

func (b *breaker) edit(p packet) packet {
	if b == nil || p.kind() != b.kind {
		return p
	}
	within := b.within
	if within == "" {
		within = p.condition
	}
	if !strings.Contains(p.condition, within) || !strings.Contains(within, b.clause) {
		return p
	}
	condition := strings.Replace(p.condition, within, strings.Replace(within, b.clause, either(b.clause), 1), 1)
	b.hits++
	var in map[string]any
	mustDecode(p.body, &in)
	update := in
	if p.op == "TransactWriteItems" {
		update = in["TransactItems"].([]any)[0].(map[string]any)["Update"].(map[string]any)
	}
	update["ConditionExpression"] = condition
	body, err := json.Marshal(in)
	if err != nil {
		panic(err) // it was JSON before
	}
	edited, err := newPacket(p.op, string(body))
	if err != nil {
		panic(err)
	}
	return edited
}

func mustDecode(body string, into any) {
	if err := json.Unmarshal([]byte(body), into); err != nil {
		panic(err) // the SDK's own
	}
}
