package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"sync"
)

// counter is a proxy between SQS and its clients that counts requests and messages. The clients cannot count: the figures of
// a killed worker are lost.
type counter struct {
	url    string
	server *http.Server
	served chan error

	mu     sync.Mutex
	counts map[string]*counts // by queue name
}

type counts struct {
	requests  int
	sent      int // messages that SQS confirmed, with those that it dropped as duplicates
	delivered int // messages in the responses of receives
}

func startCounter(endpoint string) (*counter, error) {
	upstream, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &counter{url: "http://" + l.Addr().String(), served: make(chan error, 1), counts: map[string]*counts{}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:      transport,
		ModifyResponse: c.count,
		// A killed worker breaks its connections. That is no error of the demo, and no client reads the status.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	c.server = &http.Server{Handler: withQueue(proxy)}
	go func() { c.served <- c.server.Serve(l) }()
	return c, nil
}

func (c *counter) close() error {
	err := c.server.Close()
	if serveErr := <-c.served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// count reads the body of a response, counts, and puts a new reader in its place.
func (c *counter) count(r *http.Response) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.StatusCode != http.StatusOK {
		return nil
	}
	var reply struct {
		Messages   []json.RawMessage
		Successful []json.RawMessage
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &reply); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.ofLocked(r.Request)
	n.requests++
	switch r.Request.Header.Get("X-Amz-Target") {
	case "AmazonSQS.ReceiveMessage":
		n.delivered += len(reply.Messages)
	case "AmazonSQS.SendMessageBatch":
		n.sent += len(reply.Successful)
	}
	return nil
}

// ofLocked returns the counts of the queue of a request. c.mu is locked.
func (c *counter) ofLocked(r *http.Request) *counts {
	name := ""
	if queue, ok := r.Context().Value(queueKey{}).(string); ok {
		name = path.Base(queue)
	}
	if c.counts[name] == nil {
		c.counts[name] = &counts{}
	}
	return c.counts[name]
}

type queueKey struct{}

// withQueue puts the URL of the queue into the request's context, where count finds it: only the body names the queue.
func withQueue(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has closed the connection
		}
		var request struct{ QueueUrl string }
		if json.Unmarshal(body, &request) == nil { // else the endpoint responds with an error
			r = r.WithContext(context.WithValue(r.Context(), queueKey{}, request.QueueUrl))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// counted returns the counts of a queue: none where nothing counts.
func (s *stack) counted(queue string) counts {
	if s.counter == nil {
		return counts{}
	}
	return s.counter.of(queue)
}

func (c *counter) of(queue string) counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.counts[queue]; n != nil {
		return *n
	}
	return counts{}
}
