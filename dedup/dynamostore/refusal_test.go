package dynamostore

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// The item of a refusal is read by the conditions' own comparisons: what the conditions would take is free, and nothing
// lies between held and free.
func TestReadRefusal(t *testing.T) {
	t.Parallel()
	const now = int64(1_000_000)
	n := aws.Int64
	for _, c := range []struct {
		name       string
		r          record
		want       standing
		noTakeover standing
	}{
		{"ours", record{status: inProgress, owner: "me", until: n(now + 1)}, ours, ours},
		{"ours, over", record{status: inProgress, owner: "me", until: n(1)}, ours, ours},
		{"released by us", record{status: inProgress, owner: "me", until: n(0)}, lost, lost},
		{"our owner without a lease end", record{status: inProgress, owner: "me"}, lost, lost},
		{"held", record{status: inProgress, owner: "other", until: n(now + 1)}, held, held},
		{"held until the guard's last millisecond", record{status: inProgress, owner: "other", until: n(now)}, held, held},
		{"over", record{status: inProgress, owner: "other", until: n(now - 1)}, free, crashed},
		{"released", record{status: inProgress, owner: "other", until: n(0)}, free, free},
		{"Powertools, held", record{status: inProgress, until: n(now)}, held, held},
		{"Powertools, over", record{status: inProgress, until: n(now - 1)}, free, crashed},
		{"undated", record{status: inProgress, expiration: n(1000)}, held, held},
		{"undated, retention over", record{status: inProgress, expiration: n(999)}, free, free},
		{"undated, without an end of retention", record{status: inProgress}, held, held},
		{"completed", record{status: completed, owner: "other", expiration: n(1000)}, done, done},
		{"completed by us", record{status: completed, owner: "me", until: n(now + 1), expiration: n(1000)}, done, done},
		{"completed, retention over", record{status: completed, expiration: n(999)}, free, free},
		{"completed, without an end of retention", record{status: completed}, done, done},
	} {
		if got := c.r.read("me", now, false); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
		if got := c.r.read("me", now, true); got != c.noTakeover {
			t.Errorf("%s, no takeover: got %d, want %d", c.name, got, c.noTakeover)
		}
	}
	// Before any answer has brought a Date, time frees nothing.
	if got := (record{status: inProgress, owner: "other", until: n(1)}).read("me", 0, false); got != held {
		t.Errorf("without a clock: got %d, want held", got)
	}
}
