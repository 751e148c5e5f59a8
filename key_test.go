package sqsonce_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
)

func TestEventKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	tests := []struct {
		name, source, id string
		want             string // a hashed key is known by its prefix and length alone
		hashed           bool
	}{
		{name: "plain", source: "orders", id: "ord-42/v3", want: "orders|ord-42/v3"},
		{name: "no source", source: "", id: "42", want: "|42"},
		{name: "id with the separator", source: "a", id: "b|c", want: "a|b|c"},
		{name: "case is kept", source: "Orders", id: "A", want: "Orders|A"},
		{name: "all punctuation", source: "o", id: "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", want: "o|!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"},
		{name: "128 bytes", source: "o", id: long[:126], want: "o|" + long[:126]},
		{name: "129 bytes", source: "o", id: long[:127], hashed: true},
		{name: "source with the separator", source: "a|b", id: "c", hashed: true},
		{name: "space", source: "o", id: "a b", hashed: true},
		{name: "leading space is not trimmed", source: "o", id: " a", hashed: true},
		{name: "delete character", source: "o", id: "a\x7f", hashed: true},
		{name: "not ASCII", source: "o", id: "é", hashed: true},
		{name: "source not ASCII", source: "é", id: "1", hashed: true},
		{name: "not UTF-8", source: "o", id: "\xff", hashed: true},
		{name: "reserved sha256", source: "sha256", id: "1", hashed: true},
		{name: "reserved sqs-event", source: "sqs-event", id: "arn|1", hashed: true},
		{name: "reserved sqs-message", source: "sqs-message", id: "arn|1", hashed: true},
		{name: "reserved sqs-dedup", source: "sqs-dedup", id: "arn|g|1", hashed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := sqsonce.EventKey(tt.source, tt.id)
			if err != nil {
				t.Fatalf("EventKey(%q, %q): %v", tt.source, tt.id, err)
			}
			if tt.hashed {
				if !strings.HasPrefix(got, "sha256|") || len(got) != len("sha256|")+64 {
					t.Errorf("EventKey(%q, %q) = %q, want a hashed key", tt.source, tt.id, got)
				}
				return
			}
			if got != tt.want {
				t.Errorf("EventKey(%q, %q) = %q, want %q", tt.source, tt.id, got, tt.want)
			}
		})
	}
}

// TestEventKeyIsStable pins hashed keys: a changed hash would make every event new to its consumers.
func TestEventKeyIsStable(t *testing.T) {
	t.Parallel()
	// printf '6:ordersa b' | sha256sum
	const want = "sha256|158706209f5d4da5a78afc5943309564f563d5a0a073d3164ec5f8cba7eaf981"
	if got, err := sqsonce.EventKey("orders", "a b"); got != want || err != nil {
		t.Errorf("EventKey(orders, a b) = %q, %v, want %q", got, err, want)
	}
}

func TestEventKeyNeedsAnID(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"", "orders", "sha256"} {
		if got, err := sqsonce.EventKey(source, ""); !errors.Is(err, sqsonce.ErrNoEventID) || got != "" {
			t.Errorf("EventKey(%q, empty) = %q, %v, want no key and ErrNoEventID", source, got, err)
		}
	}
}

// FuzzEventKey compares pairs: the same key for two of them would lose an event.
func FuzzEventKey(f *testing.F) {
	f.Add("orders", "1", "orders", "2")
	f.Add("a|b", "c", "a", "b|c")             // the first separator must split uniquely
	f.Add("a b", "c", "a", " bc")             // hashed parts must not run together
	f.Add("1 ", "2", "1", " 2")               //
	f.Add("sha256", "x", "sha256|x", "x")     // a source may not imitate a hashed key
	f.Add("sqs-message", "arn|1", "", "1")    // nor a message's
	f.Add("é", "1", "e\u0301", "1")           // no normalisation
	f.Add("o", "\xff", "o", "\xfe")           // no replacement character
	f.Add("o", "a\x00", "o", "a")             //
	f.Add("orders", "", "", "orders")         //
	f.Add("", "|", "|", "|")                  //
	f.Add("Orders", "1", "orders", "1")       // no case folding
	f.Add("orders", "1", "orders", "1\u00a0") // no trimming
	f.Fuzz(func(t *testing.T, source1, id1, source2, id2 string) {
		key1, err1 := sqsonce.EventKey(source1, id1)
		key2, err2 := sqsonce.EventKey(source2, id2)
		checkKey(t, id1, key1, err1)
		checkKey(t, id2, key2, err2)
		if err1 != nil || err2 != nil {
			return
		}
		same := source1 == source2 && id1 == id2
		if (key1 == key2) != same {
			t.Errorf("EventKey(%q, %q) = %q and EventKey(%q, %q) = %q", source1, id1, key1, source2, id2, key2)
		}
	})
}

func checkKey(t *testing.T, id, key string, err error) {
	t.Helper()
	if (id == "") != (err != nil) {
		t.Errorf("id %q: error %v, want one for an empty id only", id, err)
	}
	if err != nil {
		return
	}
	if len(key) < 1 || len(key) > 128 {
		t.Errorf("key %q has %d bytes, want 1 to 128", key, len(key))
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			t.Errorf("key %q: byte %d is not legal in a MessageDeduplicationId", key, i)
		}
	}
}

func TestKeySourceNames(t *testing.T) {
	t.Parallel()
	for source, want := range map[sqsonce.KeySource]string{
		0: "none", sqsonce.KeyFromAttribute: "attribute", sqsonce.KeyFromFunction: "function",
		sqsonce.KeyFromEventBridge: "eventbridge", sqsonce.KeyFromS3: "s3", sqsonce.KeyFromS3 + 1: "key source 10",
	} {
		if got := source.String(); got != want {
			t.Errorf("KeySource(%d): %q, want %q", uint8(source), got, want)
		}
	}
}

func ExampleEventKey() {
	key, err := sqsonce.EventKey("orders", "ord-42/v3")
	fmt.Println(key, err)
	key, err = sqsonce.EventKey("orders", "not legal in a MessageDeduplicationId")
	fmt.Println(key[:15], len(key), err)
	_, err = sqsonce.EventKey("orders", "")
	fmt.Println(err)
	// Output:
	// orders|ord-42/v3 <nil>
	// sha256|2c86980f 71 <nil>
	// sqsonce: event has no ID
}
