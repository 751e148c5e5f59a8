package awsjson_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/internal/jsonscan"
)

// reading has a field of every kind.
type reading struct {
	Name   string `json:"name,omitempty"`
	Count  *int64
	Limit  int
	Short  int32
	On     bool
	Off    *bool
	Inner  *outer
	List   []struct{ Name string }
	Lists  *[][]string
	ByName map[string]*shared
	Bytes  []byte
	Rate   float64
	Any    any
	Own    scanned
	Raw    json.RawMessage
	shared
}

// scanned reads a list of texts in both ways.
type scanned struct{ texts []string }

func (o *scanned) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &o.texts) }

func (o *scanned) ScanJSON(s *jsonscan.Scanner) error {
	if s.Word("null") {
		return nil
	}
	o.texts = []string{}
	return s.Array(func() error {
		text, err := s.Text()
		o.texts = append(o.texts, text)
		return err
	})
}

// FuzzRead: the read in one pass has the same result as encoding/json and a search for unknown names, and what is right needs no other.
func FuzzRead(f *testing.F) {
	m := awsjson.MembersOf[reading]()
	right := []string{
		`{}`, ` { "name" : "a\"\u00e9" , "Count":-1,"Limit":0,"Short":2147483647,"On":true,"Off":false} `, `{"Lists":[[],["a"],null],"Own":["x"],"Names":{"a":"b"}}`,
		`{"Inner":{"QueueUrl":"q","Entries":[{"ID":1},{},null],"By":{"x":{"Value":"v"}}},"List":[{"Name":"a"},{"Name":"b"},{"Name":""},{},{"Name":"c"}]}`,
		`{"ByName":{"a":{"Names":{}},"b":null},"Bytes":"aGk="}`, `{"Bytes":null,"List":null,"Own":null,"Inner":null,"Any":null,"Rate":null}`,
	}
	for _, text := range right {
		if known, err := m.Decode([]byte(text), new(reading)); !known {
			f.Errorf("%s is not read in one pass: %v", text, err)
		}
	}
	for _, text := range append(right,
		`{"name":"a","name":"b"}`, `{"Names":{"a":"b"},"Names":{"c":"d"}}`, `{"Inner":{"QueueUrl":"q"},"Inner":{}}`, `{"List":[{"Name":"a"}],"List":[{}]}`, `{"ByName":{"a":{"Names":{}},"a":null}}`,
		`{"Short":2147483648}`, `{"Limit":01}`, `{"Limit":-}`, `{"Limit":1.0}`, `{"Limit":1e2}`, `{"Limit":-0}`, `{"Limit":"1"}`, `{"On":truex}`, `{"On":nul}`, `{"Off":null}`, `{"Rate":1}`, `{"Any":{}}`, `{"Raw":[ 1 ]}`,
		`{"NAME":"a"}`, `{"Name":"a"}`, `{"Other":[1,{"a":"}"}],"name":"a"}`, `{"\u004eames":{}}`, `{"List":[{"Other":1}]}`, `{"Own":[1]}`, `{"Own":["a",]}`, `null`, `[]`, `"a"`, ``, `{`, `{"name"`, `{"name":"a"}x`, `{"name":"a",}`, "{\"name\":\"\xff\"}", "{\"name\":\"\n\"}",
	) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want reading
		known, err := m.Decode(text, &got)
		wantErr := awsjson.Decode(text, &want)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %+v, %v, want %+v, %v", text, got, err, want, wantErr)
		}
		if known && (m.Unknown(text) != "" || m.OtherCase(text) != "") {
			t.Fatalf("%q: known, but there is the name %q", text, m.Unknown(text))
		}
	})
}
