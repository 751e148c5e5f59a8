package ddbtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
)

// Line is a connection to a server in another process that can be used inside a synctest bubble. A bubble's clock does
// not wait for a socket, and an idle connection would keep it from ever moving: here the sockets belong to goroutines
// outside, and virtual time stands still while a request is under way. Make it outside the bubble.
type Line struct {
	url   string
	slots chan *exchange // free ones
	work  chan *exchange
}

// exchange is one request and its answer. Its channel is made outside the bubble, where nobody may use a bubble's own.
type exchange struct {
	header http.Header
	body   []byte
	done   chan struct{}

	status int
	answer []byte
	err    error
}

const lines = 16

// NewLine returns a line to the server at the URL, for as long as the process lives.
func NewLine(url string) *Line {
	l := &Line{url: strings.TrimSuffix(url, "/") + "/", slots: make(chan *exchange, lines), work: make(chan *exchange)}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: lines}}
	for range lines {
		l.slots <- &exchange{done: make(chan struct{}, 1)}
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
	// Not the caller's context: its deadlines are the bubble's, and a call that has begun is not to be cut off.
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
	x.answer, x.err = io.ReadAll(resp.Body)
}

// call sends a request of an operation and returns the answer.
func (l *Line) call(op string, body []byte) (status int, answer []byte, err error) {
	x := <-l.slots
	defer func() { l.slots <- x }()
	*x = exchange{done: x.done, body: body, header: http.Header{
		"X-Amz-Target":  {"DynamoDB_20120810." + op},
		"Content-Type":  {"application/x-amz-json-1.0"},
		"X-Amz-Date":    {"20260101T000000Z"},
		"Authorization": {"AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=0"},
	}}
	l.work <- x
	<-x.done
	return x.status, x.answer, x.err
}
