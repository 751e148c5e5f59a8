package awsjson

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
)

// response is an HTTP response, or a reset of the connection.
type response struct {
	status int
	header http.Header
	body   []byte
	reset  bool
}

// ServeHTTP serves calls over HTTP.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := read(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the request is incomplete
	}
	out := s.serve(req)
	if out.reset {
		// net/http closes the connection without a response and without a log line.
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), out.header)
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body) // if this fails, the client has disconnected
}

// RoundTrip serves a call without a network: it is the transport of an SDK client in a synctest bubble. As on AWS, a client
// that cancels a call does not stop it.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	// The call does not use r after this: when the client cancels the call, it may reuse r while the call still runs.
	req, err := read(r)
	if r.Body != nil {
		_ = r.Body.Close() // as http.RoundTripper requires
	}
	if err := cmp.Or(r.Context().Err(), err); err != nil {
		return nil, err
	}
	done := make(chan response, 1)
	s.wg.Go(func() { done <- s.serve(req) })
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case out := <-done:
		if out.reset {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
		return &http.Response{
			Status:        strconv.Itoa(out.status) + " " + http.StatusText(out.status),
			StatusCode:    out.status,
			Proto:         "HTTP/1.1",
			ProtoMajor:    1,
			ProtoMinor:    1,
			Header:        out.header,
			Body:          io.NopCloser(bytes.NewReader(out.body)),
			ContentLength: int64(len(out.body)),
			Request:       r,
		}, nil
	}
}

const maxRequest = 17 << 20 // the largest request is DynamoDB's BatchWriteItem, 16 MB

// request is the part of an HTTP request that a call needs.
type request struct {
	method, target string
	signed         bool
	trace          string
	body           []byte // at most maxRequest + 1 bytes
}

func read(r *http.Request) (request, error) {
	out := request{method: r.Method, target: r.Header.Get("X-Amz-Target"), signed: r.Header.Get("Authorization") != "", trace: r.Header.Get("X-Amzn-Trace-Id")}
	if r.Body == nil {
		return out, nil
	}
	var err error
	out.body, err = io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	return out, err
}

func (s *Server) serve(r request) response {
	target, op, _ := strings.Cut(r.target, ".")
	perform := s.svc.Operations[op]
	if r.method != http.MethodPost || target != s.svc.Target || perform == nil {
		return s.encodeError(&Error{Code: "UnknownOperationException"})
	}
	if len(r.body) > maxRequest {
		return s.encodeError(&Error{Status: http.StatusRequestEntityTooLarge, Code: "RequestEntityTooLarge"})
	}
	if !r.signed {
		return s.encodeError(&Error{Status: http.StatusForbidden, Code: "MissingAuthenticationTokenException", QueryCode: "MissingAuthenticationToken", Message: "Request is missing Authentication Token"})
	}
	return s.perform(op, perform, Request{r.body, r.trace})
}
