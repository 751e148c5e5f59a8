package dynamostore

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
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
// else is not. storetest has the other states.
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
		{"ours, over", record{status: inProgress, owner: "me", until: n(1)}, ours, ours},
		{"live until the last millisecond of the margin", record{status: inProgress, owner: "other", until: n(now)}, live, live},
		{"undated", record{status: inProgress, expiration: n(1000)}, live, live},
		{"undated, retention over", record{status: inProgress, expiration: n(999)}, free, free},
		{"undated, without an end of retention", record{status: inProgress}, live, live},
		{"completed", record{status: completed, owner: "other", expiration: n(1000)}, done, done},
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

// packet is a request of the protocol as it is on the wire: a network can lose it, delay it and deliver it again.
type packet struct {
	op, body string
	names    map[string]string
	values   map[string]map[string]any

	update, condition string
}

// readPacket takes a copy of the request's body, which can then be sent.
func readPacket(r *http.Request) (packet, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return packet{}, err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return newPacket(op, string(raw))
}

func newPacket(op, body string) (packet, error) {
	p := packet{op: op, body: body}
	var in struct {
		UpdateExpression, ConditionExpression string
		ExpressionAttributeNames              map[string]string
		ExpressionAttributeValues             map[string]map[string]any
		TransactItems                         []struct{ Update json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return p, err
	}
	if len(in.TransactItems) > 0 { // the record's is the first
		if err := json.Unmarshal(in.TransactItems[0].Update, &in); err != nil {
			return p, err
		}
	}
	p.names, p.values, p.update, p.condition = in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.UpdateExpression, in.ConditionExpression
	return p, nil
}

// request is the packet again.
func (p packet) request(ctx context.Context) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://dynamodb.local/", strings.NewReader(p.body))
	if err != nil {
		panic(err) // a constant URL
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+p.op)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256")
	return r
}

// send delivers the packet without its sender, and returns its result: "granted", "refused" by its condition, "unknown", or
// "nothing" where another error prevented its effect.
func (p packet) send(to http.RoundTripper) string {
	resp, err := to.RoundTrip(p.request(context.Background()))
	if err != nil {
		return "unknown"
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	switch {
	case err != nil, resp.StatusCode >= http.StatusInternalServerError:
		return "unknown"
	case resp.StatusCode == http.StatusOK:
		return "granted"
	case bytes.Contains(raw, []byte("ConditionalCheckFailed")):
		return "refused"
	}
	return "nothing"
}

// kind is the packet's operation of the protocol.
func (p packet) kind() string {
	switch {
	case p.op == "TransactWriteItems":
		return "commit"
	case p.op == "DeleteItem":
		return "delete"
	case strings.HasPrefix(p.update, "SET #owner=:op"):
		return "reopen"
	case strings.HasPrefix(p.update, "SET #status=:p"):
		return "acquire"
	case strings.HasPrefix(p.update, "SET #in_progress_expiration=:until"):
		return "renew"
	case strings.HasPrefix(p.update, "SET #status=:status"):
		return "complete"
	case strings.HasPrefix(p.update, "SET #in_progress_expiration=:zero"):
		return "release"
	}
	return p.op
}

func (p packet) number(name string) int64 {
	s, _ := p.values[name]["N"].(string)
	n, _ := strconv.ParseInt(s, 10, 64) // 0 where the packet has none
	return n
}
