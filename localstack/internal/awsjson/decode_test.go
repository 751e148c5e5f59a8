package awsjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// What is no request is refused, and no text names a Go type.
func TestDecode(t *testing.T) {
	t.Parallel()
	type inner struct{ Name string }
	type request struct {
		Name   string
		Count  *int64
		Limit  int
		On     bool
		Inner  *inner
		List   []inner
		ByName map[string]inner
		Bytes  []byte
	}
	for body, want := range map[string]string{
		`null`:                  "Unexpected null",
		" null\n":               "Unexpected null",
		"{\"Name\":\"a\xff\"}":  "The request is not in UTF-8",
		`{`:                     "",
		`[]`:                    "Start of list found where not expected.",
		`"a"`:                   "STRING_VALUE cannot be converted to a structure, map or list",
		`{"Name":1}`:            "NUMBER_VALUE cannot be converted to String",
		`{"Name":true}`:         "BOOLEAN_VALUE cannot be converted to String",
		`{"Name":{}}`:           "Start of structure or map found where not expected.",
		`{"Count":"1"}`:         "STRING_VALUE cannot be converted to Long",
		`{"Limit":1.5}`:         "NUMBER_VALUE cannot be converted to Integer",
		`{"On":"yes"}`:          "STRING_VALUE cannot be converted to Boolean",
		`{"Inner":{"Name":[]}}`: "Start of list found where not expected.",
		`{"List":"a"}`:          "STRING_VALUE cannot be converted to a structure, map or list",
		`{"ByName":1}`:          "NUMBER_VALUE cannot be converted to a structure, map or list",
		`{"Bytes":"%"}`:         "A value is not in Base64",
	} {
		err := awsjson.Decode([]byte(body), new(request))
		if e, ok := errors.AsType[*awsjson.Error](err); !ok || e.Code != "SerializationException" || e.Message != want {
			t.Errorf("%q: got %v, want %q", body, err, want)
		}
	}
	var in request
	if err := awsjson.Decode([]byte(`{"Name":"é","Inner":null}`), &in); err != nil || in.Name != "é" {
		t.Errorf("got %+v, %v", in, err)
	}
}

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
