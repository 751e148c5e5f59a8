package awsjson_test

import (
	"errors"
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
