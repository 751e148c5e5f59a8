package testserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
)

// Line is a client of a DynamoDB emulator that can be used inside a synctest bubble. A bubble's clock does not wait for a
// socket, and an idle connection would stop it for good: here the sockets belong to goroutines outside of the bubble, and
// virtual time stands still during a request. Make it outside of the bubble.
type Line struct {
	url  string
	free chan *exchange
	work chan *exchange
}

// exchange is one request and its response. Its channel is made outside of the bubble: only a bubble's own goroutines may
// use a channel that is made inside.
type exchange struct {
	header http.Header
	body   []byte
	done   chan struct{}

	status   int
	response []byte
	err      error
}

// lineRequests is how many requests of a line can be under way at once.
const lineRequests = 16

// NewLine returns a line to the emulator at the URL. It lives as long as the process.
func NewLine(url string) *Line {
	l := &Line{url: strings.TrimSuffix(url, "/") + "/", free: make(chan *exchange, lineRequests), work: make(chan *exchange)}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: lineRequests}}
	for range lineRequests {
		l.free <- &exchange{done: make(chan struct{}, 1)}
		go func() {
			for x := range l.work {
				x.perform(client, l.url)
				x.done <- struct{}{}
			}
		}()
	}
	return l
}

func (x *exchange) perform(client *http.Client, url string) {
	// Not the caller's context: its deadlines are the bubble's, and a request that was sent has its effect.
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(x.body))
	if err != nil {
		x.err = err
		return
	}
	r.Header = x.header
	resp, err := client.Do(r)
	if err != nil {
		x.err = err
		return
	}
	defer func() { _ = resp.Body.Close() }()
	x.status = resp.StatusCode
	x.response, x.err = io.ReadAll(resp.Body)
}

// Call sends a request of an operation, and returns the response.
func (l *Line) Call(op string, body []byte) (status int, response []byte, err error) {
	x := <-l.free
	defer func() { l.free <- x }()
	*x = exchange{done: x.done, body: body, header: http.Header{
		"X-Amz-Target":  {"DynamoDB_20120810." + op},
		"Content-Type":  {"application/x-amz-json-1.0"},
		"X-Amz-Date":    {"20260101T000000Z"},
		"Authorization": {"AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=0"},
	}}
	l.work <- x
	<-x.done
	return x.status, x.response, x.err
}
