package sqsonce_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
)

type order struct {
	ID     string         `json:"id"`
	Amount int            `json:"amount"`
	Lines  []line         `json:"lines"`
	Tags   map[string]int `json:"tags"`
}

type line struct {
	SKU   string `json:"sku"`
	Count int    // no tag: the field's own name
	price
}

type price struct {
	Cents int `json:"cents"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	got, err := sqsonce.Decode[order](&sqsonce.Message{Body: ` {"id":"ord-42","amount":7,"lines":[{"sku":"a","Count":2}]}` + "\n"})
	want := order{ID: "ord-42", Amount: 7, Lines: []line{{SKU: "a", Count: 2}}}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Errorf("Decode (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	tests := []struct {
		name, body string
		want       sqsonce.DecodeError // Offset: the least that is right
	}{
		{"empty", "", sqsonce.DecodeError{}},
		{"not JSON", secret, sqsonce.DecodeError{}},
		{"cut off", `{"id":"` + secret, sqsonce.DecodeError{}},
		{"data after the value", `{"id":"1"}` + secret, sqsonce.DecodeError{Offset: 10}},
		{"a second value", `{"id":"1"}{"id":"` + secret + `"}`, sqsonce.DecodeError{Offset: 10}},
		{"a stray bracket", `{"id":"1"}]`, sqsonce.DecodeError{Offset: 10}},
		{"wrong type", `{"amount":"` + secret + `"}`, sqsonce.DecodeError{Offset: 10, Field: "amount"}},
		{"number out of range", `{"amount":99999999999999999999}`, sqsonce.DecodeError{Offset: 10, Field: "amount"}},
		{"an array", `["` + secret + `"]`, sqsonce.DecodeError{Offset: 0}},
		{"a map's key is the sender's", `{"tags":{"` + secret + `":"x"}}`, sqsonce.DecodeError{Offset: 8, Field: "tags"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := sqsonce.Decode[order](&sqsonce.Message{Body: tt.body})
			if diff := cmp.Diff(order{}, got, cmp.AllowUnexported(line{})); diff != "" {
				t.Errorf("Decode returned part of a body that does not decode:\n%s", diff)
			}
			if !isReject(err) {
				t.Fatalf("Decode: %v, want a Reject", err)
			}
			de, ok := errors.AsType[*sqsonce.DecodeError](err)
			if !ok {
				t.Fatalf("Decode: %v, want a DecodeError", err)
			}
			if de.Type != "sqsonce_test.order" || de.Field != tt.want.Field || de.Offset < tt.want.Offset || de.Offset > int64(len(tt.body)) {
				t.Errorf("Decode: %+v, want %+v", *de, tt.want)
			}
			if s := fmt.Sprintf("%v %+v", err, *de); strings.Contains(s, secret) || strings.Contains(s, "9999") {
				t.Errorf("error %q holds text of the body", s)
			}
		})
	}
}

// null is no order: encoding/json would make an empty one of it.
func TestDecodeNull(t *testing.T) {
	t.Parallel()
	for name, decode := range map[string]func(*sqsonce.Message) error{
		"a struct": decodes[order], "a text": decodes[string], "a number": decodes[int], "an array": decodes[[2]order],
	} {
		for _, body := range []string{"null", " null\n"} {
			err := decode(&sqsonce.Message{Body: body})
			if err == nil || isReject(err) || !strings.Contains(err.Error(), "body is null") {
				t.Errorf("%q into %s: %v, want an ordinary error that says so", body, name, err)
			}
		}
	}
	for name, decode := range map[string]func(*sqsonce.Message) error{
		"a pointer": decodes[*order], "a map": decodes[map[string]int], "a slice": decodes[[]order], "raw JSON": decodes[json.RawMessage], "an interface": decodes[any],
	} {
		if err := decode(&sqsonce.Message{Body: "null"}); err != nil {
			t.Errorf("null into %s: %v", name, err)
		}
	}
	for name, body := range map[string]string{"SNS": inSNS("null"), "a CloudEvent": inCloudEvent("null")} {
		h := sqsonce.OpenEnvelope(sqsonce.JSON(func(context.Context, order) error { return nil }))
		if err := h(t.Context(), &sqsonce.Message{Body: body}); err == nil || isReject(err) {
			t.Errorf("null in %s: %v, want an ordinary error", name, err)
		}
	}
}

// leaky is a type whose own decoder puts what it read into its errors.
type leaky struct{}

func (*leaky) UnmarshalJSON(b []byte) error {
	return &json.UnmarshalTypeError{Value: string(b), Field: "holder." + string(b)}
}

func TestDecodeErrorFieldIsDeclared(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	type node struct {
		Next *node `json:"next"`
		N    int   `json:"n"`
	}
	type tree []tree
	type flat struct{ Count int }
	fieldOf := func(err error) string {
		t.Helper()
		de, ok := errors.AsType[*sqsonce.DecodeError](err)
		if !ok {
			t.Fatalf("%v, want a DecodeError", err)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error %q holds text of the body", err)
		}
		return de.Field
	}
	decode := func(f func(m *sqsonce.Message) error, body string) string {
		t.Helper()
		return fieldOf(f(&sqsonce.Message{Body: body}))
	}

	for _, tt := range []struct {
		name   string
		decode func(m *sqsonce.Message) error
		body   string
		want   []string // the second is what encoding/json/v2 can say
	}{
		{"nested", decodes[node], `{"next":{"next":{"n":"` + secret + `"}}}`, []string{"next.next.n"}},
		{"in a slice", decodes[order], `{"lines":[{"sku":1}]}`, []string{"lines.sku", "lines"}},
		{"without a tag", decodes[order], `{"lines":[{"Count":"` + secret + `"}]}`, []string{"lines.Count", "lines"}},
		{"without a tag, at the top", decodes[flat], `{"Count":"` + secret + `"}`, []string{"Count"}},
		{"promoted", decodes[order], `{"lines":[{"cents":"` + secret + `"}]}`, []string{"lines.cents", "lines.price.cents", "lines"}},
		{"keys only", decodes[map[string]map[string]int], `{"` + secret + `":{"` + secret + `":"x"}}`, []string{""}},
		{"own decoder", decodes[leaky], `"` + secret + `"`, []string{""}},
		{"a slice of itself", decodes[tree], `[["` + secret + `"]]`, []string{""}},
		{"any interface", decodes[fmt.Stringer], `"` + secret + `"`, []string{""}},
	} {
		got := decode(tt.decode, tt.body)
		found := false
		for _, w := range tt.want {
			found = found || got == w
		}
		if !found {
			t.Errorf("%s: Field = %q, want one of %q", tt.name, got, tt.want)
		}
	}
}

func TestDecodeErrorText(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]sqsonce.DecodeError{
		"sqsonce: body is not a JSON order (at byte 7)":               {Type: "order", Offset: 7},
		"sqsonce: body is not a JSON order (at byte 7, field amount)": {Type: "order", Offset: 7, Field: "amount"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func decodes[T any](m *sqsonce.Message) error {
	_, err := sqsonce.Decode[T](m)
	return err
}

func TestJSON(t *testing.T) {
	t.Parallel()
	failure := errors.New("declined")
	var got order
	var carried *sqsonce.Message
	h := sqsonce.JSON(func(ctx context.Context, o order) error {
		got = o
		carried, _ = sqsonce.FromContext(ctx)
		return failure
	})
	m := &sqsonce.Message{ID: "m-1", Body: `{"id":"ord-42"}`}
	if err := h(t.Context(), m); err != failure {
		t.Errorf("JSON: %v, want the handler's own error", err)
	}
	if got.ID != "ord-42" || carried != m {
		t.Errorf("handler saw %+v and message %v", got, carried)
	}

	called := false
	h = sqsonce.JSON(func(context.Context, order) error { called = true; return nil })
	err := h(t.Context(), &sqsonce.Message{Body: "not JSON"})
	if !isReject(err) || called {
		t.Errorf("JSON of a bad body: %v, handler called: %v; want a Reject and no call", err, called)
	}
	if _, ok := sqsonce.FromContext(t.Context()); ok {
		t.Error("FromContext found a message in a context without one")
	}
}

func TestByType(t *testing.T) {
	t.Parallel()
	var ran string
	route := func(name string) sqsonce.Handler {
		return func(context.Context, *sqsonce.Message) error { ran = name; return nil }
	}
	routes := map[string]sqsonce.Handler{"created": route("created"), "paid": route("paid"), "off": nil}
	strict := sqsonce.ByType(routes)
	withDefault := maps.Clone(routes)
	withDefault[""] = route("default")
	lenient := sqsonce.ByType(withDefault)
	clear(routes) // the handler keeps its own table

	event := func(t string) string { return `{"specversion":"1.0","id":"1","source":"s","type":"` + t + `"}` }
	tests := []struct {
		name            string
		m               sqsonce.Message
		strict, lenient string // which handler; "" is a Reject
	}{
		{"attribute", sqsonce.Message{Attributes: text("event-type", "created")}, "created", "created"},
		{"attribute before CloudEvent", sqsonce.Message{Attributes: text("event-type", "created"), Body: event("paid")}, "created", "created"},
		{"CloudEvents body", sqsonce.Message{Body: event("paid")}, "paid", "paid"},
		{"CloudEvents attributes", sqsonce.Message{Attributes: text("ce-specversion", "1", "ce-id", "1", "ce-source", "s", "ce-type", "paid")}, "paid", "paid"},
		{"an attribute that is not the CloudEvent's", sqsonce.Message{Attributes: text("type", "created"), Body: event("paid")}, "paid", "paid"},
		{"incomplete CloudEvent", sqsonce.Message{Body: `{"specversion":"1.0","type":"paid"}`}, "", "default"},
		{"case-sensitive", sqsonce.Message{Attributes: text("event-type", "Created")}, "", "default"},
		{"unknown", sqsonce.Message{Attributes: text("event-type", "refunded")}, "", "default"},
		{"no type", sqsonce.Message{}, "", "default"},
		{"nil handler", sqsonce.Message{Attributes: text("event-type", "off")}, "", "default"},
	}
	for _, tt := range tests {
		for kind, h := range map[string]sqsonce.Handler{"strict": strict, "lenient": lenient} {
			want := tt.strict
			if kind == "lenient" {
				want = tt.lenient
			}
			ran = ""
			err := h(t.Context(), &tt.m)
			if ran != want || isReject(err) != (want == "") {
				t.Errorf("%s, %s: ran %q with error %v, want %q", tt.name, kind, ran, err, want)
			}
		}
	}
}

func TestByTypeErrorIsBounded(t *testing.T) {
	t.Parallel()
	h := sqsonce.ByType(nil)
	err := h(t.Context(), &sqsonce.Message{Attributes: text("event-type", strings.Repeat("x", 1<<20))})
	if n := len(err.Error()); n > 256 {
		t.Errorf("error has %d bytes, want at most 256", n)
	}
}

func ExampleJSON() {
	type Order struct {
		ID     string `json:"id"`
		Amount int    `json:"amount"`
	}
	handler := sqsonce.JSON(func(ctx context.Context, o Order) error {
		m, _ := sqsonce.FromContext(ctx)
		fmt.Printf("charge %d for %s, delivery %d\n", o.Amount, o.ID, m.ReceiveCount)
		return nil
	})
	err := handler(context.Background(), &sqsonce.Message{Body: `{"id":"ord-42","amount":7}`, ReceiveCount: 1})
	fmt.Println(err)
	// A body that does not decode is rejected: delivering it again would change nothing.
	fmt.Println(handler(context.Background(), &sqsonce.Message{Body: `{"id":"ord-42","amount":"seven"}`}) != nil)
	// Output:
	// charge 7 for ord-42, delivery 1
	// <nil>
	// true
}

func ExampleByType() {
	handler := sqsonce.ByType(map[string]sqsonce.Handler{
		"order.created": func(context.Context, *sqsonce.Message) error { fmt.Println("created"); return nil },
		"order.paid":    func(context.Context, *sqsonce.Message) error { fmt.Println("paid"); return nil },
	})
	typed := func(t string) *sqsonce.Message {
		return &sqsonce.Message{Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventType: {Type: "String", String: t},
		}}
	}
	fmt.Println(handler(context.Background(), typed("order.paid")))
	fmt.Println(handler(context.Background(), typed("order.lost")))
	// Output:
	// paid
	// <nil>
	// sqsonce: rejected: sqsonce: no handler for event type "order.lost"
}
