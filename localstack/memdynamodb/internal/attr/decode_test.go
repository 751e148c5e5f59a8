package attr

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/internal/must"
)

func TestDecodeEncode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want Value
	}{
		{`{"S":"a\u00e9\n\"x"}`, String("aé\n\"x")},
		{` { "S" : "" } `, String("")},
		{`{"N":"1.50"}`, Number("1.5")},
		{`{"B":"aGk="}`, Binary("hi")},
		{`{"BOOL":false}`, Bool(false)},
		{`{"NULL":true}`, Null{}},
		{`{"SS":["b","a"]}`, StringSet{"b", "a"}},
		{`{"NS":["1","2.0"]}`, NumberSet{"1", "2"}},
		{`{"BS":["aGk="]}`, BinarySet{"hi"}},
		{`{"L":[{"S":"a"},{"L":[]}]}`, List{String("a"), List{}}},
		{`{"M":{"b":{"N":"2"},"a":{"M":{}}}}`, Map{{"a", Map{}}, {"b", Number("2")}}},
		{`{"M":{"a":{"N":"1"},"a":{"N":"2"}}}`, Map{{"a", Number("2")}}},
	} {
		got, err := Decode([]byte(tt.in))
		if err != nil {
			t.Errorf("Decode(%s): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Decode(%s): %s", tt.in, diff)
		}
		again, err := Decode(Append(nil, got))
		if err != nil || !Equal(got, again) {
			t.Errorf("%s: what was written, %s, reads as %v, %v", tt.in, Append(nil, got), again, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{`{}`, ErrNoType.Message}, {`{"X":"a"}`, ErrNoType.Message}, {`{"S":"a","N":"1"}`, ErrTwoTypes.Message},
		{`{"N":"abc"}`, "The parameter cannot be converted to a numeric value: abc"},
		{`{"N":""}`, "The parameter cannot be converted to a numeric value: "},
		{`{"SS":[]}`, "An string set  may not be empty"}, {`{"NS":["1","1.0"]}`, "Input collection contains duplicates."},
		{`{"SS":["b","a","b"]}`, `Input collection ["a", "b", "b"] contains duplicates.`}, {`{"BS":["/w==","AA==","AA=="]}`, `Input collection ["AA==","/w==","AA=="]of type BS contains duplicates.`},
		{`{"NULL":false}`, "Null attribute value types must have the value of true"},
		{strings.Repeat(`{"L":[`, 34) + strings.Repeat(`]}`, 34), "Nesting Levels have exceeded supported limits"},
	} {
		_, err := Decode([]byte(tt.in))
		if e, ok := errors.AsType[*InvalidError](err); !ok || !strings.Contains(e.Message, tt.want) {
			t.Errorf("Decode(%s): got %v, want %q", tt.in, err, tt.want)
		}
	}
	for _, in := range []string{``, `1`, `"a"`, `[`, `{`, `{"S"`, `{"S":1}`, `{"S":"a"`, `{"S":"a"}x`, `{"S":"a",}`, `{"L":{}}`, `{"BOOL":"true"}`, `{"B":"%"}`, "{\"S\":\"a\nb\"}", `{"S":"\q"}`, "{\"S\":\"a\"}\x00"} {
		_, err := Decode([]byte(in))
		if _, ok := errors.AsType[*SyntaxError](err); !ok {
			t.Errorf("Decode(%s): got %v, want a SyntaxError", in, err)
		}
	}
}

// FuzzDecode: Decode accepts only valid JSON, and reads the output of Append as the same value.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"S":"a"}`, `{"N":"1e5"}`, `{"M":{"a":{"L":[{"B":"aGk="}]}}}`, `{"SS":["a","b"]}`, `{"NULL":true}`, `{"S":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("Decode accepts %q, which is not JSON", data)
		}
		again, err := Decode(Append(nil, v))
		if err != nil || !Equal(v, again) {
			t.Fatalf("%q is read as %v, written and read as %v, %v", data, v, again, err)
		}
		if Size(v) < 0 {
			t.Fatalf("size %d", Size(v))
		}
	})
}

func TestItemSize(t *testing.T) {
	t.Parallel()
	// Names and values in UTF-8 bytes; 3 bytes for a list or map and 1 for each of its elements.
	var m Map
	must.Do(t, m.UnmarshalJSON([]byte(`{"id":{"S":"é1"},"n":{"N":"12"},"ok":{"BOOL":true},"l":{"L":[{"S":"ab"},{"NULL":true}]},"m":{"M":{"k":{"S":"v"}}}}`)))
	want := (2 + 3) + (1 + 2) + (2 + 1) + (1 + 3 + 1 + 2 + 1 + 1) + (1 + 3 + 1 + 1 + 1)
	if got := m.Size(); got != want {
		t.Errorf("size %d, want %d", got, want)
	}
}

// TestNumberArithmetic compares with math/big on random decimals: canonical text, order, sum and difference.
func TestNumberArithmetic(t *testing.T) {
	t.Parallel()
	decimal := rapid.StringMatching(`-?[0-9]{1,15}(\.[0-9]{1,15})?`)
	rapid.Check(t, func(t *rapid.T) {
		x, y := decimal.Draw(t, "x"), decimal.Draw(t, "y")
		a, err1 := ParseNumber(x)
		b, err2 := ParseNumber(y)
		if err1 != nil || err2 != nil {
			t.Fatalf("ParseNumber: %v, %v", err1, err2)
		}
		rx, ry := rat(x), rat(y)
		if rat(string(a)).Cmp(rx) != 0 {
			t.Fatalf("ParseNumber(%s) = %s, another number", x, a)
		}
		if (a == b) != (rx.Cmp(ry) == 0) {
			t.Fatalf("texts %s and %s are equal or not, the numbers the other way", a, b)
		}
		if got := sign(a.Compare(b)); got != rx.Cmp(ry) {
			t.Fatalf("%s.Compare(%s) = %d, want %d", a, b, got, rx.Cmp(ry))
		}
		sum, err1 := a.Add(b)
		diff, err2 := a.Sub(b)
		if err1 != nil || err2 != nil {
			t.Fatalf("%s +- %s: %v, %v", a, b, err1, err2)
		}
		if rat(string(sum)).Cmp(new(big.Rat).Add(rx, ry)) != 0 || rat(string(diff)).Cmp(new(big.Rat).Sub(rx, ry)) != 0 {
			t.Fatalf("%s + %s = %s, %s - %s = %s", a, b, sum, a, b, diff)
		}
	})
}

func rat(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
func sign(n int) int        { return big.NewInt(int64(n)).Sign() }

func TestNumberSize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n    Number
		want int
	}{{"0", 1}, {"1", 2}, {"12", 2}, {"123", 3}, {"-123", 4}, {"1000", 2}, {"10", 2}, {"100", 2}, {"-100", 3}, {"0.5", 2}, {"-0.5", 3}, {"0.01", 2}, {"0.005", 2}, {"0.0012", 2}, {"0.00123", 3}, {"1.5", 3}, {"10.5", 3}, {"100.25", 4}, {"1700000000000", 3}, {"1700000000001", 8}} {
		if got := Size(tt.n); got != tt.want {
			t.Errorf("Size(%s) = %d, want %d", tt.n, got, tt.want)
		}
	}
}
