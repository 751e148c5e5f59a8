package sqsworker

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

var waitOf = regexp.MustCompile(`"WaitTimeSeconds":(\d+)`)

// A proxy cuts every long poll after 8 s, or 1.5 s, after SQS has handed out the messages. The second one shortens the wait, for as long as polls
// are cut, and the messages run.
func TestCutPolls(t *testing.T) {
	for fifo, cutAfter := range map[bool]time.Duration{false: 8 * time.Second, true: 1500 * time.Millisecond} {
		bubble(t, setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
			var ended atomic.Bool
			var cut, longest atomic.Int64 // receives, and the wait of the last one in seconds
			c := x.through(func(r *http.Request) (*http.Response, error) {
				if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ReceiveMessage") {
					time.Sleep(2 * time.Second) // which is no part of a receive's age
					return x.srv.RoundTrip(r)
				}
				body := must.Get(io.ReadAll(r.Body))(x)
				r.Body = io.NopCloser(bytes.NewReader(body))
				wait := must.Get(strconv.Atoi(waitOf.FindStringSubmatch(string(body))[1]))(x)
				longest.Store(int64(wait))
				if time.Duration(wait)*time.Second <= cutAfter || ended.Load() {
					return x.srv.RoundTrip(r)
				}
				go func() { // which SQS carries on with
					time.Sleep(cutAfter - time.Second)
					x.receive(30 * time.Second)
				}()
				time.Sleep(cutAfter)
				cut.Add(1)
				return nil, os.ErrDeadlineExceeded
			})
			var r runs
			j := x.startWith(c, r.take(0), func(o *Options) { o.MaxReceivers = 1 })
			time.Sleep(20 * time.Second)
			x.send("g:a")
			time.Sleep(40 * time.Second)
			if n := r.count("g:a"); n != 1 || cut.Load() != 2 || longest.Load() != max(1, int64(cutAfter/2/time.Second)) {
				t.Errorf("after a minute %d runs, %d receives cut, and %d s of wait; want one, two and half of what passes", n, cut.Load(), longest.Load())
			}
			time.Sleep(59 * time.Minute)
			if lines := x.log.count("long polls are cut"); cut.Load() > 12 || lines > 6 {
				t.Errorf("%d receives cut in an hour, with %d lines, want 12 and 6 at most", cut.Load(), lines)
			}
			ended.Store(true)
			time.Sleep(time.Hour)
			if longest.Load() != 15 { // the default
				t.Errorf("%d s of wait an hour later, want all of it", longest.Load())
			}
			j.stopEmptyAfter(0)
		})
	}
}

// Receives that were under way together count as one that is lost. One that was sent a visibility timeout later may hit the same message.
func TestLostPolls(t *testing.T) {
	for took, first := range map[time.Duration][]time.Duration{time.Second: {0, 0}, 35 * time.Second: {0}} {
		var p lostPolls
		var delays []time.Duration
		now := time.Now()
		for range len(first) + 5 {
			for range 3 {
				p.add(now, now.Add(took), 30*time.Second)
			}
			now = now.Add(took + time.Millisecond)
			delays = append(delays, p.delay(30*time.Second))
		}
		if want := append(first, 30*time.Second, 2*time.Minute, 8*time.Minute, mostAfterLost, mostAfterLost); !slices.Equal(delays, want) {
			t.Errorf("delays %v, want %v", delays, want)
		}
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
		j.stopEmptyAfter(0)
		if lines := x.log.count("without a receive count"); lines != 1 || len(r.list()) != 6 {
			t.Errorf("%d lines, runs %v, want one, and six", lines, r.list())
		}
	})
}
