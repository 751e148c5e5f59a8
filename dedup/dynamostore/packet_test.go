package dynamostore

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

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
	case strings.HasPrefix(p.update, "SET #status=:d"):
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
