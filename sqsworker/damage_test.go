package sqsworker

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// tap is a connection on which a test sees, and may change, the answers to receives.
type tap struct {
	http.RoundTripper
	answer func(text []byte) []byte
}

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.ReceiveMessage" {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(t.answer(text)))
	return resp, nil
}

// tapped is the fixture's client with a tap.
func (x *fixture) tapped(answer func(text []byte) []byte) *sqs.Client {
	return sqs.New(x.c.Options(), func(o *sqs.Options) {
		o.HTTPClient = &http.Client{Transport: &tap{x.srv, answer}}
	})
}

// TestDamagedBodyFailsAlone: the SDK's own check would answer one damaged body with an error for the whole receive.
func TestDamagedBodyFailsAlone(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("body-a", "body-b", "body-c")
		damaged := false
		c := x.tapped(func(text []byte) []byte {
			if damaged {
				return text
			}
			damaged = bytes.Contains(text, []byte(`"Body":"body-a"`))
			return bytes.Replace(text, []byte(`"Body":"body-a"`), []byte(`"Body":"body-x"`), 1)
		})
		var r runs
		w, err := New(c, x.url, r.take(time.Millisecond), func(o *Options) {
			o.Wait = time.Second
			o.Backoff = func(int) time.Duration { return 5 * time.Second }
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		x.wantEmpty()
		if got := r.list(); len(got) != 3 || r.count("body-x") != 0 || !damaged {
			t.Errorf("runs: %v, damaged: %t", got, damaged)
		}
		if s := w.Stats(); s.Failed != 1 || s.Received != 4 {
			t.Errorf("stats: %+v", s)
		}
	})
}
