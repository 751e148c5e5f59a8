// Package awsjson is the front that the in-memory services share: the AWS JSON 1.0 protocol over HTTP or as an
// http.RoundTripper, error shapes, fault plans and the record of calls. What an operation does is the service's.
package awsjson

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Operation performs one operation. It reads its input from the body, and the rule where the fault is its own business
// (entries of a batch, deliveries); it returns the output to encode and what the call counts as. The body is
// another call's once its answer is written: nothing may keep a part of it.
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
	// Injected returns the error of a code that a fault plan names, with its status, or nil for one it does not know: that
	// one is then a 400. Default: knows none.
	Injected func(code string) *Error
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
