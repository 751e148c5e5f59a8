package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

// pipes is a listener of connections in memory, which have the bubble's clock.
type pipes struct {
	net.Listener // nil: Serve calls no other method
	to           chan net.Conn
	closed       chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.to:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns the client's end of a connection.
func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.to <- server
	return client
}

const call = "POST / HTTP/1.1\r\nHost: localaws\r\nX-Amz-Target: %s\r\nAuthorization: x\r\nContent-Length: %d\r\n\r\n%s"

// Connections of clients that have gone end, whatever they were sent before. A poll of 20 s is none of them.
func TestConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(options{}, "", io.Discard)
		defer w.close()
		p := &pipes{to: make(chan net.Conn), closed: make(chan struct{})}
		server := newServer(w)
		served := make(chan error, 1)
		go func() { served <- server.Serve(p) }()
		defer func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		}()
		list := fmt.Sprintf(call, "AmazonSQS.ListQueues", 2, "{}")
		for _, tt := range []struct {
			sent  string
			after time.Duration
		}{
			{list[:20], headerTimeout}, {fmt.Sprintf(call, "AmazonSQS.ListQueues", 7, "{}"), readTimeout}, {list, idleTimeout},
		} {
			c := p.dial()
			begin := time.Now()
			go func() { _, _ = io.WriteString(c, tt.sent) }() // the server may close the connection before it has read all
			text := must.Get(io.ReadAll(c))(t)
			if got := time.Since(begin); got != tt.after {
				t.Errorf("after %q the connection ended in %s with %q, want %s", tt.sent, got, text, tt.after)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}

		c := p.dial()
		reader := bufio.NewReader(c)
		for _, op := range []struct{ name, body, has string }{
			{"CreateQueue", `{"QueueName":"jobs"}`, "/jobs"},
			{"ReceiveMessage", `{"QueueUrl":"http://localaws/000000000000/jobs","WaitTimeSeconds":20}`, "{}"},
		} {
			go func() { _, _ = fmt.Fprintf(c, call, "AmazonSQS."+op.name, len(op.body), op.body) }()
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatalf("%s: %v", op.name, err)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), op.has) {
				t.Errorf("%s: %d %s, %v", op.name, resp.StatusCode, text, err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The record of calls would grow as long as the command runs.
func TestNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(options{}, "", io.Discard)
	defer w.close()
	server := newServer(w)
	for _, target := range []string{"AmazonSQS.ListQueues", "DynamoDB_20120810.ListTables"} {
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localaws/", strings.NewReader("{}")))(t)
		r.Header.Set("X-Amz-Target", target)
		r.Header.Set("Authorization", "x")
		var got status
		if server.Handler.ServeHTTP(&got, r); got != http.StatusOK {
			t.Errorf("%s: status %d", target, got)
		}
	}
	if n := len(w.home().SQS.Calls()) + len(w.home().DynamoDB.Calls()); n != 0 {
		t.Errorf("%d calls are recorded, want none", n)
	}
}

// status is a response of which only the status counts.
type status int

func (s *status) Header() http.Header         { return http.Header{} }
func (s *status) Write(b []byte) (int, error) { return len(b), nil }
func (s *status) WriteHeader(code int)        { *s = status(code) }
