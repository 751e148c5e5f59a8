// Package sdkhttp makes calls of the SDK lose no answer, and their errors say who has answered.
package sdkhttp

import (
	"io"
	"net/http"
)

// Client is the HTTPClient of the SDK's options.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// WholeAnswers returns a client that does not lose answers, for calls whose lost answer costs something: a receive hides its messages
// for their visibility timeout.
//
// When a request's body is sent, net/http reads it once more, to see its end. The SDK closes the body as soon as an answer begins. Where
// that comes first, as on a busy machine or beside a server on the same one, the body says io.EOF to a WriteTo, which net/http takes
// for a request that has failed: it closes the connection, and what it has not read yet of the answer is lost. To a Read io.EOF is the
// end. Seen with smithy-go v1.28.8 (safeWriteToReadCloser) and Go 1.26 (transferWriter.writeBody).
func WholeAnswers(client Client) Client {
	if client == nil {
		return nil
	}
	return wholeAnswers{client}
}

type wholeAnswers struct{ client Client }

func (c wholeAnswers) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body} // without its WriteTo
	}
	return c.client.Do(r)
}
