package sqsworker

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

var waitOf = regexp.MustCompile(`"WaitTimeSeconds":(\d+)`)

// A proxy cuts every long poll after 8 s, after SQS has handed out the messages. The second one shortens the wait, for as long as polls
// are cut, and the messages run.
func TestCutPolls(t *testing.T) {
	const cutAfter = 8
	for _, fifo := range []bool{false, true} {
		bubble(t, setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
			var ended atomic.Bool
			var cut, longest atomic.Int64 // receives, and the wait of the last one in seconds
			c := x.through(func(r *http.Request) (*http.Response, error) {
				if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ReceiveMessage") {
					return x.srv.RoundTrip(r)
				}
				body := must.Get(io.ReadAll(r.Body))(x)
				r.Body = io.NopCloser(bytes.NewReader(body))
				wait := must.Get(strconv.Atoi(waitOf.FindStringSubmatch(string(body))[1]))(x)
				longest.Store(int64(wait))
				if wait <= cutAfter || ended.Load() {
					return x.srv.RoundTrip(r)
				}
				go func() { // which SQS carries on with
					time.Sleep((cutAfter - 1) * time.Second)
					x.receive(30 * time.Second)
				}()
				time.Sleep(cutAfter * time.Second)
				cut.Add(1)
				return nil, os.ErrDeadlineExceeded
			})
			var r runs
			j := x.startWith(c, r.take(0), func(o *Options) { o.MaxReceivers = 1 })
			time.Sleep(20 * time.Second)
			x.send("g:a")
			time.Sleep(40 * time.Second)
			if n := r.count("g:a"); n != 1 || cut.Load() != 2 || longest.Load() != cutAfter/2 {
				t.Errorf("after a minute %d runs, %d receives cut, and %d s of wait; want one, two and half of what passes", n, cut.Load(), longest.Load())
			}
			time.Sleep(59 * time.Minute)
			if lines := x.log.count("long polls are cut"); cut.Load() > 8 || lines > 4 {
				t.Errorf("%d receives cut in an hour, with %d lines, want 8 and 4 at most", cut.Load(), lines)
			}
			ended.Store(true)
			time.Sleep(time.Hour)
			if longest.Load() != 15 { // the default
				t.Errorf("%d s of wait an hour later, want all of it", longest.Load())
			}
			j.stopClean()
			x.wantEmpty()
		})
	}
}

// An endpoint that leaves out system attributes is named once, and its messages run.
func TestMissingSystemAttributes(t *testing.T) {
	bubble(t, setup{maxReceives: 2}, func(x *fixture) {
		c := x.through(func(r *http.Request) (*http.Response, error) {
			response, err := x.srv.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ReceiveMessage") {
				body := must.Get(io.ReadAll(response.Body))(x)
				body = bytes.ReplaceAll(body, []byte("ApproximateReceiveCount"), []byte("ReceiveCount"))
				response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			return response, err
		})
		var r runs
		j := x.startWith(c, r.take(0))
		for range 3 {
			x.send("a", "b")
			time.Sleep(time.Minute)
		}
		j.stopClean()
		x.wantEmpty()
		if lines := x.log.count("without a receive count"); lines != 1 || len(r.list()) != 6 {
			t.Errorf("%d lines, runs %v, want one, and six", lines, r.list())
		}
	})
}
