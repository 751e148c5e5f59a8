package awsjson

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
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
	if len(req.body) > maxRequest {
		_, _ = io.Copy(io.Discard, r.Body) // a client that still writes would see the closed connection, and no response
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
	s.start(func() { done <- s.serve(req) })
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
	query          bool // of the query protocol
	signed         bool
	scope          Scope
	trace, host    string
	body           []byte // at most maxRequest + 1 bytes
	unreadable     error  // why the body was not decoded
}

func read(r *http.Request) (request, error) {
	out := request{
		method: r.Method, target: r.Header.Get("X-Amz-Target"), query: Query(r), signed: r.Header.Get("Authorization") != "",
		scope: ScopeOf(r),
		trace: r.Header.Get("X-Amzn-Trace-Id"), host: r.Host,
	}
	if r.Body == nil {
		return out, nil
	}
	if r.Header.Get("Content-Encoding") != "gzip" {
		var err error
		out.body, err = readBody(r.Body, r.ContentLength)
		return out, err
	}
	packed, err := gzip.NewReader(r.Body)
	if err == nil {
		out.body, err = readBody(packed, r.ContentLength)
	}
	out.unreadable = err
	return out, nil
}

// readBody reads at most maxRequest + 1 bytes. It has room for the length that the client gives, if that is likely.
func readBody(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), 1<<20)) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(r, maxRequest+1))
	return b.Bytes(), err
}

func (s *Server) serve(r request) response {
	if r.query {
		return s.refuseQuery()
	}
	target, op, _ := strings.Cut(r.target, ".")
	operations := s.svc.under(target)
	perform := operations[op]
	switch {
	case r.method != http.MethodPost || operations == nil:
		return s.encodeError(&Error{Code: "UnknownOperationException", Message: s.svc.Name + " serves POST with X-Amz-Target: " + s.svc.Target + ".Operation"})
	case perform == nil:
		return s.encodeError(Unimplemented(s.svc.Name, "the operation "+op))
	case len(r.body) > maxRequest:
		return s.encodeError(&Error{Status: http.StatusRequestEntityTooLarge, Code: "RequestEntityTooLarge", Message: fmt.Sprintf("The request has more than %d bytes", maxRequest)})
	case r.unreadable != nil:
		return s.encodeError(Invalid("SerializationException", "Content-Encoding: "+r.unreadable.Error()))
	}
	if !r.signed {
		return s.encodeError(&Error{Status: http.StatusForbidden, Code: "MissingAuthenticationTokenException", QueryCode: "MissingAuthenticationToken", Message: "Request is missing Authentication Token"})
	}
	if !r.scope.Valid() {
		return s.encodeError(&Error{Status: http.StatusForbidden, Code: "InvalidSignatureException", QueryCode: "SignatureDoesNotMatch", Message: "Credential should be scoped to a valid region, not '" + r.scope.Region + "'. "})
	}
	return s.perform(op, perform, Request{r.body, r.trace, r.host})
}
