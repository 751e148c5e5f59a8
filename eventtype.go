package sqsonce

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// ByType returns a handler that calls the handler of the message's event type. The type is the event-type attribute,
// else a CloudEvents type, else the event name of a notification that [S3] has read, or the detail-type of an
// EventBridge event that [OpenEnvelope] opened. The handler under "" gets every type that has no handler of its own.
// Without a handler under "", an unknown type is a [Reject].
func ByType(h map[string]Handler) Handler {
	routes := maps.Clone(h) // the caller may go on changing its map
	return func(ctx context.Context, m *Message) error {
		t := m.eventType()
		if f := routes[t]; f != nil {
			return f(ctx, m)
		}
		if f := routes[""]; f != nil {
			return f(ctx, m)
		}
		settle.Ran(ctx, false)
		return Reject(fmt.Errorf("sqsonce: no handler for event type %.128q", t))
	}
}

func (m *Message) eventType() string {
	if t := m.Attributes[AttrEventType].String; t != "" {
		return t
	}
	if e, ok := m.cloudEvent(); ok {
		return e.eventType
	}
	return m.Envelope.Type
}

// cloudEvent is the identity and type of an event of https://github.com/cloudevents/spec. Source and id together are
// unique for each distinct event.
type cloudEvent struct{ source, id, eventType string }

// cloudEventPrefixes are the attribute spellings in use. CloudEvents doesn't define an SQS binding.
var cloudEventPrefixes = [...]string{"ce-", "ce_", ""}

// cloudEvent returns the CloudEvent in the attributes or in the JSON body, or false if one of the four required fields is
// missing, empty or not a string.
func (m *Message) cloudEvent() (cloudEvent, bool) {
	if e, ok := m.cloudEventInAttributes(); ok {
		return e, true
	}
	// Most bodies are not CloudEvents, and a search is much cheaper than parsing.
	if !strings.Contains(m.Body, `"specversion"`) && !mayEscapeName(m.Body) {
		return cloudEvent{}, false
	}
	body := members(m.Body) // nil: not a CloudEvent, the next key source decides
	return newCloudEvent(func(name string) string { return jsonString(body[name]) })
}

func (m *Message) cloudEventInAttributes() (cloudEvent, bool) {
	for _, p := range cloudEventPrefixes {
		field := func(name string) string { return m.Attributes[p+name].String }
		if e, ok := newCloudEvent(field); ok {
			return e, true
		}
	}
	return cloudEvent{}, false
}

// inBinaryMode reports whether the body is the data of a CloudEvent in the attributes, whatever it looks like. The attributes of
// one in structured mode may mirror it, as filter policies need it.
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md#33-structured-content-mode
func (m *Message) inBinaryMode(body envelope) bool {
	e, ok := m.cloudEventInAttributes()
	if !ok || body.kind != cloudEventEnvelope {
		return ok
	}
	for name, a := range m.Attributes {
		if saysStructured(name, a) {
			return false
		}
	}
	return jsonString(body.fields["source"]) != e.source || jsonString(body.fields["id"]) != e.id
}

// saysStructured reports whether an attribute is a content type of CloudEvents. A datacontenttype is that of the data: with an
// event as its data the key is still that of the event around it.
func saysStructured(name string, a Attribute) bool {
	name = strings.ToLower(name)
	return (name == "content-type" || name == "contenttype") && strings.HasPrefix(strings.ToLower(a.String), "application/cloudevents")
}

func newCloudEvent(field func(name string) string) (cloudEvent, bool) {
	e := cloudEvent{source: field("source"), id: field("id"), eventType: field("type")}
	return e, e.source != "" && e.id != "" && e.eventType != "" && field("specversion") != ""
}

// jsonString returns the string that raw encodes, or "" for anything else.
//
// encoding/json replaces what is not Unicode, such as half of a surrogate pair, by U+FFFD. Two different IDs could become
// equal, so a string with U+FFFD counts as no string.
func jsonString(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || strings.ContainsRune(s, utf8.RuneError) {
		return ""
	}
	return s
}
