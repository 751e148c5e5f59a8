// Package sdkhttp makes calls of the SDK lose no answer, and their errors say who has answered.
package sdkhttp

import (
	"bytes"
	"io"
	"net/http"
)

// Client is the HTTPClient of the SDK's options.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Whole returns a client that gives net/http each request's body as bytes in memory. That has two effects:
//
//   - No answer is lost. When a request's body is sent, net/http reads it once more, to see its end. The SDK closes the body as soon as
//     an answer begins. Where that comes first, as on a busy machine or one that runs the server too, the SDK's body says io.EOF to a
//     WriteTo, which net/http takes for a request that has failed: it closes the connection, and what it has not read yet of the answer
//     is lost. A lost answer to a receive hides its messages for their visibility timeout. Seen with smithy-go v1.28.8
//     (safeWriteToReadCloser) and Go 1.26 (transferWriter.writeBody).
//   - Headers and body are one write, where the transport's buffer has room for them. net/http sends the headers first if it does not
//     know the body's type, because such a body may block (transferWriter.FlushHeaders).
//
// The request has no GetBody, so that net/http does not send it again by itself.
func Whole(client Client) Client {
	if client == nil {
		return nil
	}
	return whole{client}
}

type whole struct{ client Client }

func (c whole) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength > 0 {
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, body)
		if closeErr := r.Body.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.client.Do(r)
}
