package dynamostore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/internal/jsonread"
)

// protocol is the SDK's way to the wire, but for the body of a shared call: that is written into one buffer of its size,
// with the texts of the statements in the form in which they were escaped once. The SDK would escape one of the same two
// texts for every statement, double its buffer until all of them fit, and copy it. See DeserializeResponse for the answer.
//
// Everything else is the SDK's: method, headers, endpoint, signature, and every answer but the usual one.
type protocol struct {
	smithyhttp.ClientProtocol
	texts *statements
	room  *room
}

// room is for the bodies of a call and of its answer.
type room struct {
	body   []byte
	answer bytes.Buffer
}

// rooms are used again when their call has returned. Nobody reads the body any more by then: the SDK has closed its
// request's, whoever still has that, and what package onewrite sends is a copy.
var rooms = sync.Pool{New: func() any { return new(room) }}

// with is the option of a shared call that has room.
func (t *statements) with(r *room) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		if jsonread.Speaks(o.Protocol) {
			o.Protocol = protocol{o.Protocol, t, r}
		}
	}
}

// SerializeRequest implements [smithyhttp.ClientProtocol]. What it sends is the input as it came through the client's
// middleware; one that holds more than a store asks for is left to the SDK.
func (p protocol) SerializeRequest(ctx context.Context, op *smithy.OperationSchema, in smithy.Serializable, req *smithyhttp.Request) error {
	batch, ok := in.(*dynamodb.BatchExecuteStatementInput)
	if !ok {
		return p.ClientProtocol.SerializeRequest(ctx, op, in, req)
	}
	body, ok := p.texts.appendBody(p.room.body[:0], batch)
	if !ok {
		return p.ClientProtocol.SerializeRequest(ctx, op, in, req)
	}
	p.room.body = body
	if err := p.ClientProtocol.SerializeRequest(ctx, op, nothing{}, req); err != nil {
		return err
	}
	filled, err := req.SetStream(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("dynamostore: body of a shared call: %w", err)
	}
	*req = *filled
	return nil
}

// nothing has the SDK make a request without a body.
type nothing struct{}

func (nothing) Serialize(smithy.ShapeSerializer) {}

// appendBody appends the input in JSON. It reports false for one that holds anything but statements with texts and numbers.
func (t *statements) appendBody(b []byte, in *dynamodb.BatchExecuteStatementInput) ([]byte, bool) {
	const around, statement, parameter = `{"ReturnConsumedCapacity":"","Statements":[]}`, `{"Parameters":[],"Statement":},`, `{"S":""},`
	size := len(around) + len(in.ReturnConsumedCapacity)
	for _, r := range in.Statements {
		size += len(statement) + len(t.quoted(r.Statement))
		if r.Statement == nil || len(r.Parameters) == 0 || r.ConsistentRead != nil || r.ReturnValuesOnConditionCheckFailure != "" {
			return nil, false
		}
		for _, v := range r.Parameters {
			kind, text := plain(v)
			if kind == 0 {
				return nil, false
			}
			size += len(parameter) + len(text)
		}
	}
	b = slices.Grow(b, size) // and more, where a key has to be escaped
	b = append(b, `{"ReturnConsumedCapacity":`...)
	b = appendString(b, string(in.ReturnConsumedCapacity))
	b = append(b, `,"Statements":`...)
	separator := byte('[')
	for _, r := range in.Statements {
		b = append(b, separator)
		b = t.appendStatement(b, r)
		separator = ','
	}
	return append(b, `]}`...), separator == ',' && in.ReturnConsumedCapacity != ""
}

func (t *statements) appendStatement(b []byte, r ddbtypes.BatchStatementRequest) []byte {
	b = append(b, `{"Parameters":`...)
	separator := byte('[')
	for _, v := range r.Parameters {
		kind, text := plain(v)
		b = append(b, separator, '{', '"', kind, '"', ':')
		b = append(appendString(b, text), '}')
		separator = ','
	}
	b = append(b, `],"Statement":`...)
	return append(append(b, t.quoted(r.Statement)...), '}')
}

// plain is a text or a number, and 0 for anything else.
func plain(v ddbtypes.AttributeValue) (kind byte, text string) {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return 'S', v.Value
	case *ddbtypes.AttributeValueMemberN:
		return 'N', v.Value
	default:
		return 0, ""
	}
}

// quoted is a statement's text as JSON.
func (t *statements) quoted(text *string) string {
	switch text {
	case t.insert.text:
		return t.insert.json
	case t.complete.text:
		return t.complete.json
	default:
		return string(appendString(nil, aws.ToString(text)))
	}
}

// appendString is s as JSON. Hardly any key has something to escape.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // of a string: no error
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
