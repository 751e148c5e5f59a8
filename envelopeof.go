package sqsonce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// envelopeKind is the kind of an envelope. It is empty for a body that is not an envelope.
type envelopeKind string

const (
	snsEnvelope         envelopeKind = "SNS"
	eventBridgeEnvelope envelopeKind = "EventBridge"
	cloudEventEnvelope  envelopeKind = "CloudEvents" // in structured mode
)

// envelope is the kind and the fields of a body. If lacks is set, the body can only be an envelope of this kind, but
// the field of that name is missing or has a wrong value.
type envelope struct {
	kind   envelopeKind
	fields map[string]json.RawMessage
	lacks  string
}

// envelopeOf returns the envelope that a body is. Each kind is known by fields that no other body has together.
func envelopeOf(body string) envelope {
	// Most bodies are no envelopes, and a search is much cheaper than parsing.
	sns, eventBridge, cloudEvent := strings.Contains(body, `"TopicArn"`), strings.Contains(body, `"detail-type"`), strings.Contains(body, `"specversion"`)
	if !sns && !eventBridge && !cloudEvent && !mayEscapeName(body) {
		return envelope{}
	}
	fields := members(body)
	has := func(names ...string) (n int) {
		for _, name := range names {
			if fields[name] != nil {
				n++
			}
		}
		return n
	}
	// lacks returns the first of the names whose field is no text.
	lacks := func(names ...string) string {
		for _, name := range names {
			if jsonString(fields[name]) == "" {
				return name
			}
		}
		return ""
	}
	if strings.HasPrefix(jsonString(fields["TopicArn"]), "arn:") && has("Type", "MessageId", "Message") == 3 {
		missing := lacks("Type", "MessageId", "Timestamp")
		if missing == "" || jsonString(fields["Type"]) == "Notification" {
			return envelope{snsEnvelope, fields, missing}
		}
	}
	if has("source", "detail-type", "detail") == 3 {
		missing := lacks("id", "source", "detail-type", "region", "time")
		if missing == "" && !bytes.HasPrefix(fields["detail"], []byte("{")) {
			missing = "detail"
		}
		return envelope{eventBridgeEnvelope, fields, missing}
	}
	if has("specversion") == 1 && has("id", "source", "type", "data", "data_base64") >= 2 {
		return envelope{cloudEventEnvelope, fields, lacks("specversion", "id", "source", "type")}
	}
	return envelope{}
}

// mayEscapeName reports whether a body that is an object has an escape of a character of ASCII, such as a letter of a name.
func mayEscapeName(body string) bool {
	if !strings.HasPrefix(strings.TrimSpace(body), "{") {
		return false
	}
	for _, after, ok := strings.Cut(body, `\u00`); ok; _, after, ok = strings.Cut(after, `\u00`) {
		if after != "" && '2' <= after[0] && after[0] <= '7' {
			return true
		}
	}
	return false
}

// members returns the members of a body that is one JSON object, else nil. encoding/json refuses a body of more than 10,000
// levels, which other parsers read: here its tokens are read, which have no such limit.
//
// It returns a map, not a struct: encoding/json would also accept "ID" and "Source" for a struct's fields.
func members(body string) (fields map[string]json.RawMessage) {
	err := json.Unmarshal([]byte(body), &fields)
	if err == nil {
		return fields
	}
	if len(body) <= maxDepth {
		return nil
	}
	fields = map[string]json.RawMessage{}
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		begin := d.InputOffset()
		if err != nil || !ok || skipValue(d) != nil {
			return nil
		}
		fields[name] = json.RawMessage(strings.TrimLeft(body[begin:d.InputOffset()], " \t\r\n:"))
	}
	if _, err := d.Token(); err != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	return fields
}

// maxDepth is how many levels encoding/json reads.
const maxDepth = 10_000

// skipValue reads the tokens of one value.
func skipValue(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// firstEnvelope returns the envelope that a body is, or the first one in an array of them, such as a batch of CloudEvents.
func firstEnvelope(body string) (e envelope, inArray bool) {
	if !strings.HasPrefix(strings.TrimSpace(body), "[") {
		return envelopeOf(body), false
	}
	var elements []json.RawMessage
	if json.Unmarshal([]byte(body), &elements) != nil {
		return envelope{}, false
	}
	for _, element := range elements {
		if e = envelopeOf(string(element)); e.kind != "" {
			return e, true
		}
	}
	return envelope{}, false
}

// envelopeFields are fields of which a type that is made for an envelope has at least one.
var envelopeFields = map[envelopeKind][]string{
	snsEnvelope:         {"TopicArn", "MessageId"},
	eventBridgeEnvelope: {"detail", "detail-type"},
	cloudEventEnvelope:  {"specversion", "data", "data_base64"},
}

// checkNoEnvelope fails for a body in an envelope that is to be decoded as a t which is not made for it: encoding/json would
// ignore its fields, and the handler would succeed with an empty value.
func (m *Message) checkNoEnvelope(t reflect.Type) error {
	e, inArray := firstEnvelope(m.Body)
	if t = element(t); e.kind == "" || t.Kind() != reflect.Struct {
		return nil // a map or an interface holds all; anything else does not decode
	}
	for _, name := range envelopeFields[e.kind] {
		if _, ok := fieldByJSONName(t, name); ok {
			return nil
		}
	}
	if inArray || m.inBinaryMode(e) {
		return fmt.Errorf("%w: one of %s, not a %s, in an array or as the data of a CloudEvent, where sqsonce.OpenEnvelope leaves it: decode a type with its fields", ErrEnvelope, e.kind, t)
	}
	return fmt.Errorf("%w: the body is one of %s, not a %s: put sqsonce.OpenEnvelope around the handler, outside of deduplication", ErrEnvelope, e.kind, t)
}
