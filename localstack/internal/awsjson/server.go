// Package awsjson is the part that memsqs and memdynamodb share: the AWS JSON 1.0 protocol over HTTP or as an
// http.RoundTripper, error shapes, fault plans and the record of calls. The operations belong to the services.
package awsjson

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/injector"
)

// Operation performs one operation. It decodes its input from the request and returns the output to encode, and the cost for
// the record of calls. rule, which may be nil, is for the faults inside an operation: entries of a batch, deliveries.
type Operation func(ctx context.Context, in Request, rule *fault.Rule) (out any, cost Cost, err error)

// Request is what an operation sees of a request.
type Request struct {
	Body  []byte
	Trace string // the header X-Amzn-Trace-Id
	Host  string // that the client has called
}

// Cost is the Entries and Units of a fault.Call.
type Cost struct {
	Entries int
	Units   float64
}

// Service describes a service to New.
type Service struct {
	// Name is what the service calls itself where it refuses what AWS has and it has not: "memsqs".
	Name string
	// Target is the prefix of X-Amz-Target: "AmazonSQS", "DynamoDB_20120810".
	Target string
	// Namespace is the prefix of an error's __type: "com.amazonaws.sqs".
	Namespace string
	// InternalCode is the code of the service's internal error.
	InternalCode string
	// CRC adds X-Amz-Crc32 to responses, as DynamoDB does. Default: false.
	CRC bool
	// Operations by name.
	Operations map[string]Operation
	// Others are operations under other targets than Target: those of DynamoDB's streams. Each has a name of its own. Default: none.
	Others map[string]map[string]Operation
	// Injected returns the error for a code of a fault plan, or nil for an unknown code, which has status 400. Default: all
	// codes are unknown.
	Injected func(code string) *Error
	// Now is the server's clock, for the Date of responses. Default: time.Now.
	Now func() time.Time
	// NoRecord leaves Calls empty. Default: false.
	NoRecord bool
	// State saves and loads the service. Required for StateOf.
	State State
}

// Unimplemented refuses a part of AWS that a service does not have. The code is that of an operation that AWS does not know. An
// invented answer would be worse: tests would rely on it.
func Unimplemented(service, what string) *Error {
	return Invalid("UnknownOperationException", service+" does not implement "+what)
}

// Server serves the calls of a service. Create it inside the synctest bubble that uses it.
type Server struct {
	*injector.Injector
	svc    Service
	ctx    context.Context // cancelled by Close: long polls and replays must end before a test's bubble
	cancel context.CancelFunc
	wg     sync.WaitGroup
	close  sync.RWMutex // held by Close while it cancels ctx: a WaitGroup takes no goroutine beside its Wait
	nextID atomic.Uint64
}

// New returns a server. It starts no goroutine.
func New(svc Service, plan fault.Plan) *Server {
	if svc.Now == nil {
		svc.Now = time.Now
	}
	s := &Server{Injector: injector.New(fault.Plan{}), svc: svc}
	s.Set(plan)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Set replaces the plan of faults, and counts calls from 0 again. It does not change the recorded calls. It panics for a rule whose
// Op the service does not have.
func (s *Server) Set(plan fault.Plan) {
	for i, r := range plan.Rules {
		if all := s.svc.names(); r.Op != "" && !slices.Contains(all, r.Op) {
			panic(fmt.Sprintf("fault.Plan: Rules[%d].Op is %q, which is none of %s", i, r.Op, all))
		}
	}
	s.Injector.Set(plan)
}

// Close ends long polls and pending replays, and waits for them. Later calls are served, but long polls do not wait.
func (s *Server) Close() {
	s.close.Lock()
	s.cancel()
	s.close.Unlock()
	s.wg.Wait()
}

// start runs f on a goroutine, for which Close waits if it was not called yet.
func (s *Server) start(f func()) {
	s.close.RLock()
	defer s.close.RUnlock()
	if s.ctx.Err() != nil {
		go f()
		return
	}
	s.wg.Go(f)
}

// Serves reports whether r is a call of this service.
func (s *Server) Serves(r *http.Request) bool {
	target, _, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return ok && s.svc.under(target) != nil
}

// under returns the operations under a target, nil for a target that the service does not have.
func (s *Service) under(target string) map[string]Operation {
	if target == s.Target {
		return s.Operations
	}
	return s.Others[target]
}

// names returns the names of all operations.
func (s *Service) names() []string {
	all := slices.Collect(maps.Keys(s.Operations))
	for _, operations := range s.Others {
		all = slices.AppendSeq(all, maps.Keys(operations))
	}
	slices.Sort(all)
	return all
}

func (s *Server) perform(op string, perform Operation, in Request) response {
	rule := s.Next(op)
	cost := Cost{}
	defer func() { s.record(op, cost, rule) }()

	if rule != nil {
		switch {
		case rule.Do == fault.Error && !rule.After:
			return s.encodeError(s.injected(rule))
		case rule.Do == fault.Reset && !rule.After:
			return response{reset: true}
		case rule.Do == fault.Delay && !rule.After:
			s.sleep(rule.Delay)
		case rule.Do == fault.Delay:
			defer s.sleep(rule.Delay) // the response is encoded by then: its Date is that of the effect
		}
	}
	out, c, err := perform(s.ctx, in, rule)
	cost = c
	if rule != nil {
		switch rule.Do {
		case fault.Error:
			return s.encodeError(s.injected(rule))
		case fault.LoseReply, fault.Reset:
			return response{reset: true}
		case fault.Replay:
			s.replay(op, perform, in, rule)
		}
	}
	if err != nil {
		return s.encodeError(err)
	}
	return s.encode(http.StatusOK, out, nil)
}

// replay performs the same request once more, like a copy of it that the network delayed.
func (s *Server) replay(op string, perform Operation, in Request, rule *fault.Rule) {
	s.start(func() {
		if !s.sleep(rule.Delay) {
			return
		}
		_, c, _ := perform(s.ctx, in, nil) // there is no client to respond to
		s.record(op, c, rule)
	})
}

func (s *Server) record(op string, c Cost, rule *fault.Rule) {
	if !s.svc.NoRecord {
		s.Record(fault.Call{Op: op, Entries: c.Entries, Units: c.Units, Fault: rule})
	}
}

// sleep returns false if Close ended it.
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

// injected returns the error of a fault plan's rule.
func (s *Server) injected(r *fault.Rule) *Error {
	if s.svc.Injected != nil {
		if e := s.svc.Injected(r.Code); e != nil {
			return e
		}
	}
	e := &Error{Code: r.Code, Message: "injected fault"}
	if r.Code == "" || r.Code == s.svc.InternalCode {
		e.Code, e.Status = s.svc.InternalCode, http.StatusInternalServerError
	}
	return e
}

// NoBody is the output of an operation whose response has no body.
var NoBody = noBody{}

type noBody struct{}

func marshal(out any) ([]byte, error) {
	if out == NoBody {
		return nil, nil
	}
	if out == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(out)
}

// coral are the namespaces of the errors that AWS's framework makes for all services. Recorded: architect/dynalite, test/connection.js.
var coral = map[string]string{
	"ValidationException":                 "com.amazon.coral.validate",
	"SerializationException":              "com.amazon.coral.service",
	"UnknownOperationException":           "com.amazon.coral.service",
	"MissingAuthenticationTokenException": "com.amazon.coral.service",
	"InvalidSignatureException":           "com.amazon.coral.service",
}

func (s *Server) encodeError(err error) response {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Status: http.StatusInternalServerError, Code: s.svc.InternalCode, Message: err.Error()}
	}
	name := cmp.Or(e.MessageName, "message")
	if e.Code == "SerializationException" {
		name = "Message"
	}
	out := map[string]any{"__type": cmp.Or(coral[e.Code], s.svc.Namespace) + "#" + e.Code}
	if e.Message != "" {
		out[name] = e.Message
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

func (s *Server) encode(status int, out any, h http.Header) response {
	if h == nil {
		h = http.Header{}
	}
	body, err := marshal(out)
	if err != nil {
		// The output of an operation has no JSON: a bug of the service.
		status, body = http.StatusInternalServerError, []byte(fmt.Sprintf(`{"__type":"%s#%s"}`, s.svc.Namespace, s.svc.InternalCode))
	}
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amzn-Requestid", fmt.Sprintf("00000000-0000-4000-8000-%012x", s.nextID.Add(1)))
	h.Set("Date", s.svc.Now().UTC().Format(http.TimeFormat))
	if s.svc.CRC {
		h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	}
	return response{status: status, header: h, body: body}
}

// Error is an error response. An operation returns it; any other error of an operation is an internal error.
type Error struct {
	// Status is the HTTP status. Default: 400.
	Status int
	// Code is the error's shape name, such as "QueueDoesNotExist" or "ConditionalCheckFailedException".
	Code string
	// QueryCode is the code of the old Query protocol, for the header x-amzn-query-error. Default: no header.
	QueryCode string
	Message   string
	// MessageName is the name of the message's member. Default: "message".
	MessageName string
	// Fields are further members of the shape, such as DynamoDB's Item and CancellationReasons.
	Fields map[string]any
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (e *Error) status() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

func (e *Error) fault() string {
	if e.status() >= 500 {
		return "Receiver"
	}
	return "Sender"
}

// Invalid returns an error with status 400.
func Invalid(code, message string) *Error { return &Error{Code: code, Message: message} }
