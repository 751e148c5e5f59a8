package sqsworker

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/internal/jsonread"
)

// protocol is the SDK's way to the wire, but for the answers to receives and deletes: they are what a worker reads, and the
// SDK makes some twenty allocations for each message of a receive, where six will do, and three for one that was deleted.
//
// What comes out is the same, and what an answerReader does not know, or finds wrong, the SDK reads instead.
type protocol struct{ smithyhttp.ClientProtocol }

// readQuickly is an option of receives and deletes.
func readQuickly(o *sqs.Options) {
	if jsonread.Speaks(o.Protocol) {
		o.Protocol = protocol{o.Protocol}
	}
}

// DeserializeResponse implements [smithyhttp.ClientProtocol].
func (p protocol) DeserializeResponse(ctx context.Context, op *smithy.OperationSchema, types *smithy.TypeRegistry, resp *smithyhttp.Response, out smithy.Deserializable) error {
	slow := func() error { return p.ClientProtocol.DeserializeResponse(ctx, op, types, resp, out) }
	var quick func(*answerReader) bool
	switch out := out.(type) {
	case *sqs.ReceiveMessageOutput:
		quick = func(r *answerReader) bool { return r.received(out) }
	case *sqs.DeleteMessageBatchOutput:
		quick = func(r *answerReader) bool { return r.deleted(out) }
	}
	if quick == nil || resp.StatusCode != http.StatusOK {
		return slow()
	}
	r := answerReaders.Get().(*answerReader)
	defer r.giveBack()
	return jsonread.Answer(resp, &r.raw, func(text []byte) bool {
		r.Reader = jsonread.New(text)
		return quick(r)
	}, slow)
}

// answerReader reads one answer.
type answerReader struct {
	raw bytes.Buffer
	jsonread.Reader
	text []byte // of one message, but for its body
	body []byte
	list []attribute
}

// attribute is a system attribute of the message that is being read.
type attribute struct {
	name  string
	value span
}

// span is a part of text: a string is made of the whole when the message is complete.
type span struct{ from, to int }

var answerReaders = sync.Pool{New: func() any { return new(answerReader) }}

// mostKept is the buffer that is kept for the next answer. One of ten small messages takes a few KB, the longest 1 MiB.
const mostKept = 64 << 10

func (r *answerReader) giveBack() {
	if r.raw.Cap() <= mostKept && cap(r.body) <= mostKept && cap(r.text) <= mostKept {
		answerReaders.Put(r)
	}
}

// received reads the answer to a receive.
func (r *answerReader) received(out *sqs.ReceiveMessageOutput) bool {
	var messages []sqstypes.Message
	r.Object(func(name []byte) {
		if string(name) != "Messages" || messages != nil {
			r.Fail()
			return
		}
		messages = make([]sqstypes.Message, 0, maxBatch)
		texts := make([]messageText, 0, maxBatch)
		r.Array(func() {
			if len(messages) == maxBatch {
				r.Fail()
				return
			}
			messages, texts = messages[:len(messages)+1], texts[:len(texts)+1]
			r.message(&messages[len(messages)-1], &texts[len(texts)-1])
		})
	})
	if !r.End() {
		return false
	}
	out.Messages = messages
	return true
}

// deleted reads the answer to a delete of which nothing failed. Its IDs are those that a worker gives.
func (r *answerReader) deleted(out *sqs.DeleteMessageBatchOutput) bool {
	var successful []sqstypes.DeleteMessageBatchResultEntry
	var failed []sqstypes.BatchResultErrorEntry
	r.Object(func(name []byte) {
		switch {
		case string(name) == "Successful" && successful == nil:
			successful = make([]sqstypes.DeleteMessageBatchResultEntry, 0, maxBatch)
			r.Array(func() { successful = append(successful, sqstypes.DeleteMessageBatchResultEntry{Id: r.onlyID()}) })
		case string(name) == "Failed" && failed == nil:
			failed = []sqstypes.BatchResultErrorEntry{}
			r.Array(r.Fail)
		default:
			r.Fail()
		}
	})
	if !r.End() {
		return false
	}
	out.Successful, out.Failed = successful, failed
	return true
}

// onlyID reads an object of an ID and nothing else.
func (r *answerReader) onlyID() (id *string) {
	r.Object(func(name []byte) {
		r.FailIf(string(name) != "Id")
		id = r.entryID()
	})
	return id
}

func (r *answerReader) entryID() *string {
	r.text = r.AppendString(r.text[:0])
	for i := range entryIDs {
		if entryIDs[i] == string(r.text) {
			return entryID(i)
		}
	}
	r.Fail()
	return nil
}

// messageText is what the pointers of a message point to.
type messageText struct{ id, handle, body, bodySum, attributesSum string }

func (r *answerReader) message(m *sqstypes.Message, f *messageText) {
	r.text, r.list = r.text[:0], r.list[:0]
	var id, handle, bodySum, attributesSum span
	r.Object(func(name []byte) {
		switch string(name) {
		case "MessageId":
			id, m.MessageId = r.value(), &f.id
		case "ReceiptHandle":
			handle, m.ReceiptHandle = r.value(), &f.handle
		case "MD5OfBody":
			bodySum, m.MD5OfBody = r.value(), &f.bodySum
		case "MD5OfMessageAttributes":
			attributesSum, m.MD5OfMessageAttributes = r.value(), &f.attributesSum
		case "Body":
			// A string of its own: an ID that somebody keeps is not to keep a body of a megabyte.
			r.body = r.AppendString(r.body[:0])
			f.body = string(r.body)
			m.Body = &f.body
		case "Attributes":
			r.FailIf(m.Attributes != nil)
			r.Object(func(name []byte) {
				r.list = append(r.list, attribute{systemAttribute(name), r.value()})
			})
			m.Attributes = make(map[string]string, len(r.list))
		case "MessageAttributes":
			r.FailIf(m.MessageAttributes != nil)
			m.MessageAttributes = map[string]sqstypes.MessageAttributeValue{}
			r.Object(func(name []byte) {
				m.MessageAttributes[string(name)] = r.messageAttribute()
			})
		default:
			r.Fail()
		}
	})
	text := string(r.text)
	f.id, f.handle, f.bodySum, f.attributesSum = id.of(text), handle.of(text), bodySum.of(text), attributesSum.of(text)
	for _, a := range r.list {
		m.Attributes[a.name] = a.value.of(text)
	}
}

// value reads a string into text.
func (r *answerReader) value() span {
	from := len(r.text)
	r.text = r.AppendString(r.text)
	return span{from, len(r.text)}
}

func (s span) of(text string) string { return text[s.from:s.to] }

// systemAttribute is the name as a string that exists already.
func systemAttribute(name []byte) string {
	for _, known := range systemAttributes {
		if string(name) == string(known) {
			return string(known)
		}
	}
	return string(name)
}

func (r *answerReader) messageAttribute() sqstypes.MessageAttributeValue {
	var v sqstypes.MessageAttributeValue
	r.Object(func(name []byte) {
		text := string(r.AppendString(nil))
		switch string(name) {
		case "DataType":
			v.DataType = &text
		case "StringValue":
			v.StringValue = &text
		case "BinaryValue":
			var err error
			v.BinaryValue, err = base64.StdEncoding.DecodeString(text)
			r.FailIf(err != nil)
		default:
			r.Fail()
		}
	})
	return v
}
