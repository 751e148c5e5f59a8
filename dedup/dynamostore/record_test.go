package dynamostore

import "testing"

// A result that is no text comes back as it was, too.
func TestDataRoundTrip(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", `{"id":1}`, "zażółć", "\x00\xff\xfe"} {
		out, err := decodeData(encodeData([]byte(in)))
		if err != nil || string(out) != in {
			t.Errorf("%q: got %q, %v", in, out, err)
		}
	}
}
