// Package onewrite has net/http send a small request's head and body in one write.
//
// net/http flushes the head by itself before it reads a body of which it does not know that it is in memory. The SDK wraps
// its bodies, which are in memory, so every call takes two writes, two packets or TLS records, and wakes the other side
// twice. Both are one where the transport's write buffer has room for head and body.
package onewrite

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// most is the longest body that is sent with its head: longer ones outgrow write buffers, and are worth no copy.
const most = 16 << 10

// Client sends through next.
func Client(next aws.HTTPClient) aws.HTTPClient {
	return client{next}
}

type client struct{ next aws.HTTPClient }

// Do implements [aws.HTTPClient]. The body is a copy: the SDK takes its own back as soon as there is an answer, when net/http
// may still be writing. It cannot be had again, as before, so that net/http repeats no request by itself.
func (c client) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.ContentLength <= 0 || r.ContentLength > most {
		return c.next.Do(r)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	_ = r.Body.Close() // it was read, or there is an error to return
	if err != nil {
		return nil, fmt.Errorf("onewrite: request body: %w", err)
	}
	whole := *r
	whole.Body, whole.GetBody = io.NopCloser(bytes.NewReader(body)), nil
	return c.next.Do(&whole)
}
