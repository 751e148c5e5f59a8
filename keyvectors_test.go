package sqsonce_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
	"unicode/utf16"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
)

var updateKeys = flag.Bool("update-keys", false, "write the keys of testdata/keys.json anew, from its events and messages")

const vectorsFile = "testdata/keys.json"

// keyVectors are for producers and consumers in other languages; docs/messages.md explains them. A key that is empty stands
// for an error: the event or message has none. To add one, write it without its key, and run TestKeyVectors with -update-keys.
type keyVectors struct {
	Events   []eventVector   `json:"events"`
	Messages []messageVector `json:"messages"`
}

type eventVector struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	ID     string `json:"id"`
	Key    string `json:"key"`
}

type messageVector struct {
	Name     string `json:"name"`
	QueueARN string `json:"queueArn"`
	// Message is as ReceiveMessage returns it.
	Message struct {
		MessageID  string                     `json:"MessageId"`
		Body       string                     `json:"Body"`
		Attributes map[string]string          `json:"Attributes,omitempty"`
		Message    map[string]vectorAttribute `json:"MessageAttributes,omitempty"`
	} `json:"message"`
	OpenEnvelope bool   `json:"openEnvelope,omitempty"` // the consumer has sqsonce.OpenEnvelope
	S3           bool   `json:"s3,omitempty"`           // and in it sqsonce.S3
	Key          string `json:"key"`
	KeySource    string `json:"keySource,omitempty"`
}

type vectorAttribute struct {
	DataType    string
	StringValue string `json:",omitempty"`
	BinaryValue []byte `json:",omitempty"`
}

// TestKeyVectors pins the keys that other languages must make: a changed one would make events new to their consumers.
func TestKeyVectors(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(vectorsFile))(t)
	var v keyVectors
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	must.Do(t, d.Decode(&v))
	if len(v.Events) < 20 || len(v.Messages) < 20 {
		t.Fatalf("%d events and %d messages, want at least 20 of each", len(v.Events), len(v.Messages))
	}
	for i := range v.Events {
		v.Events[i].check(t)
	}
	for i := range v.Messages {
		v.Messages[i].check(t)
	}
	if !*updateKeys {
		return
	}
	must.Do(t, os.WriteFile(vectorsFile, v.encode(t), 0o644))
}

// check compares the key, or sets it under -update-keys.
func (v *eventVector) check(t *testing.T) {
	t.Helper()
	key, err := sqsonce.EventKey(v.Source, v.ID)
	if (key == "") != (err != nil) {
		t.Errorf("%s: EventKey = %q, %v, want a key or an error", v.Name, key, err)
	}
	if *updateKeys {
		v.Key = key
	}
	if key != v.Key {
		t.Errorf("%s: EventKey(%q, %q) = %q, want %q", v.Name, v.Source, v.ID, key, v.Key)
	}
}

func (v *messageVector) check(t *testing.T) {
	t.Helper()
	m := &sqsonce.Message{
		ID: v.Message.MessageID, Body: v.Message.Body, QueueARN: v.QueueARN,
		DedupID: v.Message.Attributes["MessageDeduplicationId"], Attributes: map[string]sqsonce.Attribute{},
	}
	for name, a := range v.Message.Message {
		m.Attributes[name] = sqsonce.Attribute{Type: a.DataType, String: a.StringValue, Binary: a.BinaryValue}
	}
	if v.OpenEnvelope {
		take := sqsonce.OpenEnvelope(func(_ context.Context, inner *sqsonce.Message) error { m = inner; return nil })
		if err := take(t.Context(), m); err != nil {
			t.Errorf("%s: %v", v.Name, err)
			return
		}
	}
	if v.S3 {
		var err error
		if m, err = throughS3(t, m); err != nil {
			t.Errorf("%s: %v", v.Name, err)
			return
		}
	}
	key, source, err := m.Key()
	if (key == "") != (err != nil) {
		t.Errorf("%s: Key = %q, %v, want a key or an error", v.Name, key, err)
	}
	found := source.String()
	if err != nil {
		found = ""
	}
	if *updateKeys {
		v.Key, v.KeySource = key, found
	}
	if key != v.Key || found != v.KeySource {
		t.Errorf("%s: Key = %q from %s, want %q from %s", v.Name, key, found, v.Key, v.KeySource)
	}
}

// encode returns the file's text. What is not printable ASCII is escaped: é has two encodings that look the same.
func (v *keyVectors) encode(t *testing.T) []byte {
	t.Helper()
	var text, out bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	must.Do(t, e.Encode(v))
	for _, r := range text.String() {
		if r < 0x7f {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.Bytes()
}
