package sqsworker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math/bits"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// protocol is the SDK's way to the wire, but for the answer to a receive: it is most of what a worker reads, and the SDK
// makes some twenty allocations for each message of it. Four will do.
//
// What comes out is the same, and what an answerReader does not know, or finds wrong, the SDK reads instead.
type protocol struct{ smithyhttp.ClientProtocol }

// readQuickly is an option of a receive. A client that speaks another protocol, or this one in a way of its own, keeps it.
func readQuickly(o *sqs.Options) {
	if p, ok := o.Protocol.(*awsjson.Protocol); ok && p.ID().Name == "awsJson1_0" {
		o.Protocol = protocol{p}
	}
}

// DeserializeResponse implements [smithyhttp.ClientProtocol].
func (p protocol) DeserializeResponse(ctx context.Context, op *smithy.OperationSchema, types *smithy.TypeRegistry, resp *smithyhttp.Response, out smithy.Deserializable) error {
	answer, ok := out.(*sqs.ReceiveMessageOutput)
	if !ok || resp.StatusCode != http.StatusOK {
		return p.ClientProtocol.DeserializeResponse(ctx, op, types, resp, out)
	}
	r := answerReaders.Get().(*answerReader)
	defer r.giveBack()
	if err := r.load(resp.Body); err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	if messages, ok := r.answer(); ok {
		answer.Messages = messages
		return nil
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(r.raw.Bytes()), resp.Body}
	return p.ClientProtocol.DeserializeResponse(ctx, op, types, resp, out)
}

// answerReader reads the JSON of one answer. At the first thing that it does not know it gives up: bad.
type answerReader struct {
	raw  bytes.Buffer
	in   []byte
	at   int
	bad  bool
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

func (r *answerReader) load(from io.Reader) error {
	r.raw.Reset()
	_, err := r.raw.ReadFrom(from)
	r.in, r.at, r.bad = r.raw.Bytes(), 0, false
	return err
}

// answer reads all of it.
func (r *answerReader) answer() ([]sqstypes.Message, bool) {
	var messages []sqstypes.Message
	r.object(func(name []byte) {
		if string(name) != "Messages" || messages != nil {
			r.bad = true
			return
		}
		messages = make([]sqstypes.Message, 0, maxBatch)
		texts := make([]messageText, 0, maxBatch)
		r.array(func() {
			if len(messages) == maxBatch {
				r.bad = true
				return
			}
			messages, texts = messages[:len(messages)+1], texts[:len(texts)+1]
			r.message(&messages[len(messages)-1], &texts[len(texts)-1])
		})
	})
	r.space()
	return messages, !r.bad && r.at == len(r.in)
}

// messageText is what the pointers of a message point to.
type messageText struct{ id, handle, body, bodySum, attributesSum string }

func (r *answerReader) message(m *sqstypes.Message, f *messageText) {
	r.text, r.list = r.text[:0], r.list[:0]
	var id, handle, bodySum, attributesSum span
	r.object(func(name []byte) {
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
			r.body = r.appendString(r.body[:0])
			f.body = string(r.body)
			m.Body = &f.body
		case "Attributes":
			r.bad = r.bad || m.Attributes != nil
			r.object(func(name []byte) {
				r.list = append(r.list, attribute{systemAttribute(name), r.value()})
			})
			m.Attributes = make(map[string]string, len(r.list))
		case "MessageAttributes":
			r.bad = r.bad || m.MessageAttributes != nil
			m.MessageAttributes = map[string]sqstypes.MessageAttributeValue{}
			r.object(func(name []byte) {
				m.MessageAttributes[string(name)] = r.messageAttribute()
			})
		default:
			r.bad = true
		}
	})
	text := string(r.text)
	f.id, f.handle, f.bodySum, f.attributesSum = id.of(text), handle.of(text), bodySum.of(text), attributesSum.of(text)
	for _, a := range r.list {
		m.Attributes[a.name] = a.value.of(text)
	}
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
	r.object(func(name []byte) {
		text := string(r.appendString(nil))
		switch string(name) {
		case "DataType":
			v.DataType = &text
		case "StringValue":
			v.StringValue = &text
		case "BinaryValue":
			var err error
			v.BinaryValue, err = base64.StdEncoding.DecodeString(text)
			r.bad = r.bad || err != nil
		default:
			r.bad = true
		}
	})
	return v
}

// object calls member at the value of each member.
func (r *answerReader) object(member func(name []byte)) {
	r.expect('{')
	for n := 0; !r.bad && !r.is('}'); n++ {
		if n > 0 {
			r.expect(',')
		}
		name := r.name()
		r.expect(':')
		if !r.bad {
			member(name)
		}
	}
}

// array calls item at each item.
func (r *answerReader) array(item func()) {
	r.expect('[')
	for n := 0; !r.bad && !r.is(']'); n++ {
		if n > 0 {
			r.expect(',')
		}
		if !r.bad {
			item()
		}
	}
}

// name reads a name as it is. One with an escape or a letter of more than a byte is nothing that SQS sends unasked.
func (r *answerReader) name() []byte {
	r.expect('"')
	name := r.in[r.at : r.at+plain(r.in[r.at:])]
	r.at += len(name)
	if r.at == len(r.in) || r.in[r.at] != '"' || !ascii(name) {
		r.bad = true
		return nil
	}
	r.at++
	return name
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// value reads a string into text.
func (r *answerReader) value() span {
	from := len(r.text)
	r.text = r.appendString(r.text)
	return span{from, len(r.text)}
}

// appendString reads a string. It leaves to the SDK what may be changed on its way out of JSON: letters that are spelled
// as numbers, and what is no UTF-8.
func (r *answerReader) appendString(to []byte) []byte {
	r.expect('"')
	start := len(to)
	for !r.bad {
		rest := r.in[r.at:]
		n := plain(rest)
		to, rest = append(to, rest[:n]...), rest[n:]
		r.at += n
		switch {
		case len(rest) > 0 && rest[0] == '"':
			r.at++
			r.bad = !utf8.Valid(to[start:])
			return to
		case len(rest) > 1 && rest[0] == '\\' && escaped[rest[1]] != 0:
			r.at += 2
			to = append(to, escaped[rest[1]])
		default:
			r.bad = true
		}
	}
	return to
}

var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// plain is how many bytes at the start of text stand for themselves in a string. It looks at eight of them at once: less
// or equal, in each byte of a word, is what subtraction borrows from its highest bit. A borrow may spoil the bytes after
// it, but not the first that is found.
func plain(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(text)-n >= 8; n += 8 {
		v := binary.LittleEndian.Uint64(text[n:])
		quote, backslash := v^ones*'"', v^ones*'\\'
		found := (v-ones*' ')&^v | (quote-ones)&^quote | (backslash-ones)&^backslash
		if found &= highs; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] >= ' ' && text[n] != '"' && text[n] != '\\' {
		n++
	}
	return n
}

func (r *answerReader) expect(c byte) {
	if !r.bad && !r.is(c) {
		r.bad = true
	}
}

// is reads c, and reports false where something else comes next.
func (r *answerReader) is(c byte) bool {
	r.space()
	if r.at == len(r.in) || r.in[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *answerReader) space() {
	for r.at < len(r.in) && (r.in[r.at] == ' ' || r.in[r.at] == '\n' || r.in[r.at] == '\t' || r.in[r.at] == '\r') {
		r.at++
	}
}
