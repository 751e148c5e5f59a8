package awsjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

type shared struct{ Names map[string]string }

type own struct{ text string }

func (o *own) UnmarshalJSON(text []byte) error { o.text = string(text); return nil }

type outer struct {
	QueueURL string `json:"QueueUrl,omitempty"`
	Entries  []struct{ ID *int }
	By       map[string]struct{ Value string }
	Item     own
	Raw      json.RawMessage
	shared
}

func TestMembers(t *testing.T) {
	t.Parallel()
	m := awsjson.MembersOf[outer]()
	for text, want := range map[string][2]string{
		`{}`: {}, `[]`: {}, ` { } `: {}, `null`: {}, `"QueueURL"`: {},
		`{"QueueUrl": "a\\\"{", "Entries" : [ { "ID" : 1 } , {} ],"By":{"any":{"Value":""}}}`: {},
		`{"Item":{"id":{"s":[{"x":1}]}},"Raw":[{"y":{}}],"Names":{"z":"z"}}`:                  {},
		`{"QueueURL":""}`: {"QueueURL", "QueueURL"},
		`{"Tags":{"a":[1,{"b":"}]"}]},"Entries":[{"ID":1},{"Id":2}]}`: {"Tags", "Entries.Id"},
		`{"Entries":[{"ID":-15},{"Other":true}]}`:                     {"Entries.Other", ""},
		`{"By":{"any":{"value":""}}}`:                                 {"By.value", "By.value"},
		`{"shared":{}}`:                                               {"shared", ""},
		`{"Names":{},"names":{}}`:                                     {"names", "names"},
	} {
		var v outer
		if err := json.Unmarshal([]byte(text), &v); err != nil && text[0] == '{' {
			t.Fatalf("%s: %v", text, err)
		}
		if got := [2]string{m.Unknown([]byte(text)), m.OtherCase([]byte(text))}; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// Whatever encoding/json takes, the scanner goes through.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{"QueueUrl":"\u0041\\"}`, `{"By":{"":{}},"Entries":[[]]}`, ` [1, 2 ,{"a":null}]`, `"\\"`, `-0`} {
		f.Add(text)
	}
	m := awsjson.MembersOf[outer]()
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			t.Skip()
		}
		var v outer
		strict := json.NewDecoder(strings.NewReader(text))
		strict.DisallowUnknownFields()
		err := strict.Decode(&v)
		if got := m.Unknown([]byte(text)); got == "" && err != nil && strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: known, but %v", text, err)
		}
	})
}
