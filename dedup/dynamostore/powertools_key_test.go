package dynamostore

import "testing"

// The hashes are those of the npm package, version 2.35.0; package interop computes them there.
func TestPowertoolsKey(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`"order-42"`:              "WLnM11idtSdsnsi97teW6w==",
		`{"B":1,"a":-0.0}`:        "WQESy2R3lKm/k7lXGD/znw==",
		`{"b":1,"A":[true,null]}`: "UZ8iOXA5Nyjt5OcGDZ+UMw==",
	} {
		got, err := PowertoolsKey([]byte(payload))
		same, sameErr := PowertoolsKey([]byte(" " + payload + "\n"))
		if err != nil || sameErr != nil || got != want || same != want {
			t.Errorf("%s: got %q, %v, and with space around it %q, %v, want %q", payload, got, err, same, sameErr, want)
		}
	}
	for _, payload := range []string{``, `{`, `1 2`, `{"a":1,"A":2}`, `[{"ID":1,"id":2}]`} {
		if got, err := PowertoolsKey([]byte(payload)); err == nil {
			t.Errorf("%s: got %q, want an error", payload, got)
		}
	}
}
