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

// damage changes one body on its way.
type damage struct {
	http.RoundTripper
	done bool
}

func (d *damage) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(r)
	if err != nil || d.done || r.Header.Get("X-Amz-Target") != "AmazonSQS.ReceiveMessage" {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	changed := bytes.Replace(text, []byte(`"Body":"body-a"`), []byte(`"Body":"body-x"`), 1)
	d.done = !bytes.Equal(text, changed)
	resp.Body = io.NopCloser(bytes.NewReader(changed))
	return resp, nil
}

// TestDamagedBodyFailsAlone: the SDK's own check would answer one damaged body with an error for the whole receive.
func TestDamagedBodyFailsAlone(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("body-a", "body-b", "body-c")
		d := &damage{RoundTripper: x.srv}
		c := sqs.New(x.c.Options(), func(o *sqs.Options) { o.HTTPClient = &http.Client{Transport: d} })
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
		if got := r.list(); len(got) != 3 || r.count("body-x") != 0 || !d.done {
			t.Errorf("runs: %v, damaged: %t", got, d.done)
		}
		if s := w.Stats(); s.Failed != 1 || s.Received != 4 {
			t.Errorf("stats: %+v", s)
		}
	})
}
