// Package awsjson is the front that the in-memory services share: the AWS JSON 1.0 protocol over HTTP or as an
// http.RoundTripper, error shapes, fault plans and the record of calls. What an operation does is the service's.
package awsjson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Operation performs one operation. It reads its input from the body, and the rule where the fault is its own business
// (entries of a batch, deliveries); it returns the output to encode and what the call counts as.
type Operation func(ctx context.Context, body []byte, rule *fault.Rule) (out any, cost Cost, err error)

// Cost is what a call counts as in the record.
type Cost struct {
	Entries int
	Units   float64
}

// Service describes a service to New.
type Service struct {
	// Target is the prefix of X-Amz-Target: "AmazonSQS", "DynamoDB_20120810".
	Target string
	// Namespace is the prefix of an error's __type: "com.amazonaws.sqs".
	Namespace string
	// InternalCode is the code of the service's internal error.
	InternalCode string
	// CRC makes answers carry X-Amz-Crc32, as DynamoDB's do.
	CRC bool
	// Operations by name.
	Operations map[string]Operation
	// Now is the server's clock, which answers carry in their Date. Default: time.Now.
	Now func() time.Time
}

// Server answers a service's calls. Create it inside the synctest bubble that uses it.
type Server struct {
	*fault.Injector
	svc    Service
	ctx    context.Context // ends with Close: long polls and replays must not outlive a test's bubble
	cancel context.CancelFunc
	wg     sync.WaitGroup
	nextID atomic.Uint64
}

// New starts a server. It has no goroutines of its own.
func New(svc Service, plan fault.Plan) *Server {
	if svc.Now == nil {
		svc.Now = time.Now
	}
	s := &Server{Injector: fault.NewInjector(plan), svc: svc}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends long polls and outstanding replays and waits for them. Later calls are answered as ever, but do not wait.
func (s *Server) Close() {
	s.cancel()
	s.wg.Wait()
}

// Serves reports whether r is a call of this service.
func (s *Server) Serves(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("X-Amz-Target"), s.svc.Target+".")
}

// answer is a reply, or a broken connection.
type answer struct {
	status int
	header http.Header
	body   []byte
	reset  bool
}

// ServeHTTP answers over HTTP.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.answer(r)
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
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	done := make(chan answer, 1)
	s.wg.Go(func() { done <- s.answer(r.WithContext(context.WithoutCancel(r.Context()))) })
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

func (s *Server) answer(r *http.Request) answer {
	target, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	perform := s.svc.Operations[op]
	if r.Method != http.MethodPost || target != s.svc.Target || perform == nil {
		return s.encodeError(&Error{Code: "UnknownOperationException"})
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxRequest+1)); err != nil {
			return answer{reset: true} // the request never arrived whole
		}
	}
	if len(body) > maxRequest {
		return s.encodeError(&Error{Status: http.StatusRequestEntityTooLarge, Code: "RequestEntityTooLarge"})
	}
	if r.Header.Get("Authorization") == "" {
		return s.encodeError(&Error{Status: http.StatusForbidden, Code: "MissingAuthenticationTokenException", QueryCode: "MissingAuthenticationToken", Message: "Request is missing Authentication Token"})
	}
	return s.perform(op, perform, body)
}

func (s *Server) perform(op string, perform Operation, body []byte) answer {
	rule := s.Next(op)
	cost := Cost{}
	defer func() { s.Record(fault.Call{Op: op, Entries: cost.Entries, Units: cost.Units, Fault: rule}) }()

	if rule != nil {
		switch {
		case rule.Do == fault.Error && !rule.After:
			return s.encodeError(s.injected(rule))
		case rule.Do == fault.Reset && !rule.After:
			return answer{reset: true}
		case rule.Do == fault.Delay:
			s.sleep(rule.Delay)
		}
	}
	out, c, err := perform(s.ctx, body, rule)
	cost = c
	if rule != nil {
		switch rule.Do {
		case fault.Error:
			return s.encodeError(s.injected(rule))
		case fault.LoseReply, fault.Reset:
			return answer{reset: true}
		case fault.Replay:
			s.replay(op, perform, body, rule)
		}
	}
	if err != nil {
		return s.encodeError(err)
	}
	return s.encode(http.StatusOK, out, nil)
}

// replay performs the same bytes once more, as a copy of the packet that the network held back would.
func (s *Server) replay(op string, perform Operation, body []byte, rule *fault.Rule) {
	s.wg.Go(func() {
		if !s.sleep(rule.Delay) {
			return
		}
		_, c, _ := perform(s.ctx, body, nil) // nobody is left to answer
		s.Record(fault.Call{Op: op, Entries: c.Entries, Units: c.Units, Fault: rule})
	})
}

func (s *Server) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *Server) injected(r *fault.Rule) *Error {
	e := &Error{Code: r.Code, Message: "injected fault"}
	if r.Code == "" || r.Code == s.svc.InternalCode {
		e.Code, e.Status = s.svc.InternalCode, http.StatusInternalServerError
	}
	return e
}

func (s *Server) encodeError(err error) answer {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Status: http.StatusInternalServerError, Code: s.svc.InternalCode, Message: err.Error()}
	}
	out := map[string]any{"__type": s.svc.Namespace + "#" + e.Code}
	if e.Message != "" {
		out["message"] = e.Message
	}
	for k, v := range e.Fields {
		out[k] = v
	}
	h := http.Header{}
	if e.QueryCode != "" {
		h.Set("X-Amzn-Query-Error", e.QueryCode+";"+e.fault())
	}
	return s.encode(e.status(), out, h)
}

func (s *Server) encode(status int, out any, h http.Header) answer {
	if h == nil {
		h = http.Header{}
	}
	body := []byte("{}")
	if out != nil {
		var err error
		if body, err = json.Marshal(out); err != nil {
			// An operation returned something that has no JSON: our mistake, not the caller's.
			status, body = http.StatusInternalServerError, []byte(fmt.Sprintf(`{"__type":"%s#%s"}`, s.svc.Namespace, s.svc.InternalCode))
		}
	}
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amzn-Requestid", fmt.Sprintf("00000000-0000-4000-8000-%012x", s.nextID.Add(1)))
	h.Set("Date", s.svc.Now().UTC().Format(http.TimeFormat))
	if s.svc.CRC {
		h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	}
	return answer{status: status, header: h, body: body}
}
