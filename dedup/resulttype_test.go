//lint:file-ignore U1000 fields that nobody reads are what these types are about

package dedup_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

type (
	node struct {
		Value int
		Next  *node
		Links map[string][]node
	}
	secret struct {
		ID    string
		token string
	}
	hidden struct{ Public int }
	// Hidden is an exported name of a struct that JSON flattens.
	Hidden   struct{ Shown int }
	embedded struct {
		hidden
		*Hidden
		Other int
	}
	viaNil struct {
		*hidden
		Other int
	}
	level   int // has only half of an encoding
	colour  int
	noSerde struct{}
	Ring    struct{ *Ring }
	broken  struct{ N int }
	opaque  struct{ text string }
	output  struct {
		none struct{}
		Name string
		noSerde
		_     int
		Local func() `json:"-"`
	}
	stamp struct {
		_ int
		time.Time
		noSerde
		Local func() `json:"-"`
	}
	twice struct {
		output
		noSerde
	}
	recursiveSecret struct {
		Next *recursiveSecret
		Deep []map[string]secret
	}
)

func (l level) MarshalText() ([]byte, error) { return []byte("high"), nil }

func (c colour) MarshalText() ([]byte, error) { return []byte{byte('a' + c)}, nil }

func (c *colour) UnmarshalText(b []byte) error { *c = colour(b[0] - 'a'); return nil }

// A result whose type JSON does not keep is refused before the effect, each time, by the name of the field.
func TestDoRefusesTypes(t *testing.T) {
	t.Parallel()
	for want, call := range map[string]func(*dedup.Once, func()) (any, error){
		"T chan int":                  do[chan int](nil),
		"T func()":                    do[func()](nil),
		"T complex128":                do[complex128](0),
		"T error":                     do[error](nil),
		"T interface {}":              do[any](nil),
		"T[] interface {}":            do[map[string]any](nil),
		"T map[dedup_test.charge]int": do[map[charge]int](nil),
		"T.token string":              do(secret{}),
		"T.Deep[][].token string":     do[*recursiveSecret](nil),
		"T.A.User.username string":    do(struct{ A url.URL }{}),
		"T.hidden *dedup_test.hidden": do(viaNil{}),
		"T.B int": do(struct {
			A int `json:"B"`
			B int
		}{}),
		"T.D int": do(struct {
			//lint:ignore SA5008 encoding/json ignores such a name
			A int `json:"it's"`
			D int `json:"A"`
		}{}),
		"T.hidden.Public int": do(struct {
			Public int
			hidden
		}{}),
		"T.Hidden.Shown int": do(struct {
			Shown int
			*Hidden
		}{}),
		"T.Ring.Ring dedup_test.Ring": do(struct{ Ring }{}),
		"T[] error":                   do([1]error{}),
		"T.Time time.Time": do(struct {
			time.Time // its MarshalJSON is that of the struct
			Currency  string
		}{}),
		"T.Int *big.Int": do(struct {
			A int
			*big.Int
		}{}),
		"T.Int big.Int": do(struct {
			A int
			big.Int
		}{}),
		"T dedup_test.level": do(level(0)),
		"T[].neg bool":       do[map[string]big.Int](nil), // encoding/json does not call (*big.Int).MarshalJSON there
		"T.Time.wall uint64": do(struct {
			time.Time
			big.Int // the methods of both cancel each other
		}{}),
	} {
		f := newFaults()
		o := newOnce(t, f)
		for range 2 {
			_, err := call(o, func() { t.Errorf("%s: f was called", want) })
			bad, ok := errors.AsType[*sqsonce.OptionError](err)
			if !ok || bad.Package != "dedup" {
				t.Errorf("%s: got error %v, want *sqsonce.OptionError", want, err)
				continue
			}
			if got := bad.Field + " (" + bad.Problem; !strings.HasPrefix(got, strings.Replace(want, " ", " ((", 1)+") ") {
				t.Errorf("got %q, want %q", err, want)
			}
		}
		if f.log() != "[]" {
			t.Errorf("%s: calls %s, want none", want, f.log())
		}
	}
}

func TestDoKeepsTypes(t *testing.T) {
	t.Parallel()
	five := 5
	keeps(t, struct{}{})
	keeps(t, &five)
	keeps(t, [2][]byte{{1}, {2}})
	keeps(t, node{Value: 1, Next: &node{Value: 2}, Links: map[string][]node{"a": {{Value: 3}}}})
	keeps(t, embedded{hidden: hidden{1}, Hidden: &Hidden{2}, Other: 3})
	keeps(t, output{Name: "x"})
	keeps(t, twice{output: output{Name: "x"}})
	keeps(t, stamp{Time: time.Unix(3, 4).UTC()})
	keeps(t, map[string]netip.Addr{"host": netip.MustParseAddr("192.0.2.1")})
	keeps(t, opaque{"x"})
	keeps(t, map[colour]colour{1: 2})
	keeps(t, map[int64]map[string]bool{1 << 60: {"x": true}})
	keeps(t, json.RawMessage(`{"any":["JSON",1]}`))
	keeps(t, struct {
		Amount big.Int // its methods have pointer receivers
		At     time.Time
		Addr   *netip.Addr
	}{Amount: *big.NewInt(1).Lsh(big.NewInt(1), 100), At: time.Unix(1, 2).UTC()})
}

func (o opaque) MarshalJSON() ([]byte, error) { return json.Marshal(o.text) }

func (o *opaque) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &o.text) }

func (b *broken) UnmarshalJSON([]byte) error { panic("no result") }

func TestDoResultThatCannotBeRead(t *testing.T) {
	t.Parallel()
	o := newOnce(t, newFaults())
	call := do(broken{1})
	if got, err := call(o, func() {}); got != (broken{1}) || err != nil {
		t.Fatalf("first call: got %v, %v, want f's own value", got, err)
	}
	_, err := call(o, func() { t.Error("ran again") })
	if p, ok := errors.AsType[*sqsonce.PanicError](err); !ok || p.Value != "no result" {
		t.Errorf("second call: got error %v, want the panic of UnmarshalJSON", err)
	}
}

func keeps[T any](t *testing.T, v T) {
	t.Helper()
	o := newOnce(t, newFaults())
	for i := range 2 {
		got, err := dedup.Do(context.Background(), o, "k", func(context.Context) (T, error) { return v, nil })
		if err != nil {
			t.Errorf("%T, call %d: %v", v, i, err)
			return
		}
		if diff := cmp.Diff(v, got, cmp.AllowUnexported(embedded{}, output{}, twice{}, stamp{}, opaque{}), cmp.Comparer(func(a, b big.Int) bool { return a.Cmp(&b) == 0 }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%T, call %d (-want +got):\n%s", v, i, diff)
		}
	}
}
