package dynamostore

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// A result that is not valid UTF-8 is returned as it was, too.
func TestDataRoundTrip(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", `{"id":1}`, "zażółć", "\x00\xff\xfe"} {
		out, err := decodeData(encodeData([]byte(in)))
		if err != nil || string(out) != in {
			t.Errorf("%q: got %q, %v", in, out, err)
		}
	}
}

// The record of a refusal is read with the conditions' own comparisons: what the conditions accept is free, and everything
// else is not.
func TestReadRefusal(t *testing.T) {
	t.Parallel()
	const now = int64(1_000_000)
	n := aws.Int64
	for _, c := range []struct {
		name       string
		r          record
		want       recordState
		noTakeover recordState
	}{
		{"ours", record{status: inProgress, owner: "me", until: n(now + 1)}, ours, ours},
		{"ours, over", record{status: inProgress, owner: "me", until: n(1)}, ours, ours},
		{"released by us", record{status: inProgress, owner: "me", until: n(0)}, released, released},
		{"our owner without a lease end", record{status: inProgress, owner: "me"}, released, released},
		{"live", record{status: inProgress, owner: "other", until: n(now + 1)}, live, live},
		{"live until the last millisecond of the margin", record{status: inProgress, owner: "other", until: n(now)}, live, live},
		{"over", record{status: inProgress, owner: "other", until: n(now - 1)}, free, crashed},
		{"released", record{status: inProgress, owner: "other", until: n(0)}, free, free},
		{"Powertools, live", record{status: inProgress, until: n(now)}, live, live},
		{"Powertools, over", record{status: inProgress, until: n(now - 1)}, free, crashed},
		{"undated", record{status: inProgress, expiration: n(1000)}, live, live},
		{"undated, retention over", record{status: inProgress, expiration: n(999)}, free, free},
		{"undated, without an end of retention", record{status: inProgress}, live, live},
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
	// Before an answer has brought a Date, no record is free by time.
	if got := (record{status: inProgress, owner: "other", until: n(1)}).read("me", 0, false); got != live {
		t.Errorf("without a clock: got %d, want live", got)
	}
}
