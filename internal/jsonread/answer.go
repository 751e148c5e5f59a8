package jsonread

import (
	"bytes"
	"io"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// Speaks reports whether p is the SDK's own JSON 1.0: whose answers can be read here. A client that speaks another
// protocol, or this one in a way of its own, keeps it.
func Speaks(p smithyhttp.ClientProtocol) bool {
	own, ok := p.(*awsjson.Protocol)
	return ok && own.ID().Name == "awsJson1_0"
}

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
