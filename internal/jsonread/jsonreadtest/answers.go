// Package jsonreadtest holds what reads answers quickly against the SDK.
package jsonreadtest

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Answers are the answers to one operation.
type Answers struct {
	Op    *smithy.OperationSchema
	Types *smithy.TypeRegistry
	Out   func() smithy.Deserializable
	// SDK reads them as the SDK does, Own quickly where it can.
	SDK, Own smithyhttp.ClientProtocol
	// IsQuick reports whether Own does not ask the SDK.
	IsQuick func(text string) bool
	// Quick are to be read quickly, Slow by the SDK.
	Quick, Slow []string
}

// Read reads an answer through p.
func (a Answers) Read(p smithyhttp.ClientProtocol, status int, body io.Reader) (smithy.Deserializable, error) {
	out := a.Out()
	resp := &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}}
	return out, p.DeserializeResponse(context.Background(), a.Op, a.Types, resp, out)
}

// SameAsSDK wants of Own what the SDK reads.
func (a Answers) SameAsSDK(t testing.TB, text string) {
	t.Helper()
	want, wantErr := a.Read(a.SDK, http.StatusOK, strings.NewReader(text))
	got, err := a.Read(a.Own, http.StatusOK, strings.NewReader(text))
	if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s\ngot  %+v, %v\nwant %+v, %v", text, got, err, want, wantErr)
	}
}

// Test reads all of them: whichever of the two reads an answer, it is the same.
func (a Answers) Test(t *testing.T) {
	t.Helper()
	for _, text := range a.Quick {
		a.SameAsSDK(t, text)
		if !a.IsQuick(text) {
			t.Errorf("left to the SDK: %s", text)
		}
	}
	for _, text := range a.Slow {
		a.SameAsSDK(t, text)
		if a.IsQuick(text) {
			t.Errorf("not left to the SDK: %s", text)
		}
	}
}

// Fuzz leaves out what the SDK reads in any case.
func Fuzz(f *testing.F, all ...Answers) {
	for _, a := range all {
		for _, text := range slices.Concat(a.Quick, a.Slow) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range all {
			if a.IsQuick(text) {
				a.SameAsSDK(t, text)
			}
		}
	})
}

// Benchmark reads text both ways.
func (a Answers) Benchmark(b *testing.B, text string) {
	for name, p := range map[string]smithyhttp.ClientProtocol{"sdk": a.SDK, "own": a.Own} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Read(p, http.StatusOK, strings.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
