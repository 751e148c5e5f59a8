package awserr

import (
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// Retryer is for what a person waits for: as often as the SDK's own, and not for half a minute.
func Retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = 300 * time.Millisecond })
}

// longestAnswer is far more than AWS answers with. The SDK reads an answer into memory, whoever it is from.
const longestAnswer = 16 << 20

// Limited is a client whose answers end after 16 MiB, as if the connection had been closed.
func Limited(c aws.HTTPClient) aws.HTTPClient { return limited{c} }

type limited struct{ client aws.HTTPClient }

func (l limited) Do(r *http.Request) (*http.Response, error) {
	res, err := l.client.Do(r)
	if res != nil && res.Body != nil {
		res.Body = &limitedBody{ReadCloser: res.Body, left: longestAnswer}
	}
	return res, err
}

type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
