package jsonscan_test

import (
	"encoding/json"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/internal/jsonscan"
)

// FuzzText: a string is read as encoding/json reads it.
func FuzzText(f *testing.F) {
	for _, s := range []string{`"a"`, ` "a"`, `"a" `, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\n"`, `"\ud800"`, `"\q"`, `"é\t"`, "\"\xff\"", "\"\xff\\n\"", "\"\n\"", `"\`, `"\"`, `"a"b`, "\"a\"\x00", `1`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := jsonscan.New(data)
		got, err := s.Text()
		if err == nil {
			err = s.End()
		}
		var want any
		wantErr := json.Unmarshal(data, &want)
		text, ok := want.(string)
		if (err == nil) != (wantErr == nil && ok) {
			t.Fatalf("%q: got %q, %v, want %v, %v", data, got, err, want, wantErr)
		}
		if err == nil && got != text {
			t.Fatalf("%q: got %q, want %q", data, got, text)
		}
	})
}
