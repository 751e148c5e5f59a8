package awsjson

import (
	"bytes"
	"cmp"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// answer is a reply, or a broken connection.
type answer struct {
	status int
	header http.Header
	body   []byte
	reset  bool
}

// ServeHTTP answers over HTTP.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := read(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the request never arrived whole
	}
	a := s.answer(req)
	req.release()
	if a.reset {
		// net/http closes the connection without a reply and without logging.
		panic(http.ErrAbortHandler)
	}
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may be gone: it gets no reply either way
}

// RoundTrip answers without a network: it is the transport of a real SDK client in a synctest bubble. As with AWS, a
// client that goes away does not stop a call that has begun.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	// Nothing of r is read later: the call may still be going on when the client has left, and has its request back.
	req, err := read(r)
	if r.Body != nil {
		_ = r.Body.Close() // RoundTripper's contract; all of it has been read
	}
	if err := cmp.Or(r.Context().Err(), err); err != nil {
		return nil, err
	}
	done := make(chan answer, 1)
	s.wg.Go(func() {
		a := s.answer(req)
		req.release()
		done <- a
	})
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case a := <-done:
		if a.reset {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
		return &http.Response{
			Status:        strconv.Itoa(a.status) + " " + http.StatusText(a.status),
			StatusCode:    a.status,
			Proto:         "HTTP/1.1",
			ProtoMajor:    1,
			ProtoMinor:    1,
			Header:        a.header,
			Body:          io.NopCloser(bytes.NewReader(a.body)),
			ContentLength: int64(len(a.body)),
			Request:       r,
		}, nil
	}
}

const maxRequest = 17 << 20 // DynamoDB's largest, BatchWriteItem, is 16 MB

// request is what a call consists of.
type request struct {
	method, target string
	signed         bool
	body           []byte        // at most maxRequest + 1 bytes
	room           *bytes.Buffer // that the body is in
}

// rooms are those of earlier calls. A long body is rare, and its room not kept for the short ones.
var rooms = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxRoom = 64 << 10

// release ends the use of the body.
func (r request) release() {
	if r.room != nil && r.room.Cap() <= 2*maxRoom {
		rooms.Put(r.room)
	}
}

func read(r *http.Request) (request, error) {
	out := request{method: r.Method, target: r.Header.Get("X-Amz-Target"), signed: r.Header.Get("Authorization") != ""}
	if r.Body == nil {
		return out, nil
	}
	out.room = rooms.Get().(*bytes.Buffer)
	out.room.Reset()
	// One allocation at most for what nearly all bodies are. A longer one may be no more than a promise.
	out.room.Grow(int(min(max(r.ContentLength, 0), maxRoom)) + bytes.MinRead)
	_, err := out.room.ReadFrom(io.LimitReader(r.Body, maxRequest+1))
	out.body = out.room.Bytes()
	return out, err
}

func (s *Server) answer(r request) answer {
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
	return s.perform(op, perform, r.body)
}
