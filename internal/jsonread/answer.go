package jsonread

import (
	"bytes"
	"io"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Answer reads the body of an answer into room and hands it to quick. Where that reports false it calls slow, the SDK's
// way, for which the body is as if nobody had read it.
func Answer(resp *smithyhttp.Response, room *bytes.Buffer, quick func(text []byte) bool, slow func() error) error {
	room.Reset()
	if _, err := room.ReadFrom(resp.Body); err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	if quick(room.Bytes()) {
		return nil
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(room.Bytes()), resp.Body}
	return slow()
}
