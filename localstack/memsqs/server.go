package memsqs

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// Options changes what a server is and does. The zero value of each field is its default.
type Options struct {
	// Seed makes message IDs, reordering and duplicates repeatable. Default: 0.
	Seed uint64
	// Faults is what goes wrong. Default: nothing.
	Faults fault.Plan
	// Now is the server's clock: visibility, delay, retention and deduplication are counted on it. Long polls wait on
	// Go's timers, so a clock that jumps is noticed at the next call, not by a poll that already waits.
	// Default: time.Now, which is virtual in a synctest bubble.
	Now func() time.Time
	// Region is in queue ARNs. Default: "us-east-1".
	Region string
	// Account is in queue ARNs and URLs. Default: "000000000000".
	Account string
	// BaseURL starts queue URLs. Clients that send to the queue URL itself instead of their endpoint need the server's
	// address here. Default: "https://sqs.<Region>.amazonaws.com".
	BaseURL string
	// Reorder lets a standard queue hand out a message up to this many places late or early, as AWS may. 0 keeps the
	// order of sending, which AWS does not promise. Default: 0.
	Reorder int
	// Duplicates is the chance, 0 to 1, that a message received from a standard queue leaves a copy that is received
	// again, as when a replica of AWS missed the receive. Default: 0.
	Duplicates float64
	// LooseHandles lets ChangeMessageVisibility succeed in two cases where its documentation names an error and AWS was seen
	// to answer success: with a superseded receipt handle, which then changes the delivery that is under way now, and after
	// the visibility timeout has ended, which then changes nothing. A consumer must survive both answers: success does not
	// prove that it still has the message. Default: false, the documented errors.
	LooseHandles bool
}

// Server is an SQS in memory. All methods are safe for concurrent use.
type Server struct {
	*awsjson.Server
	opts Options

	// mu guards every queue: a redrive touches two of them.
	mu          sync.Mutex
	rng         *rand.Rand
	queues      map[string]*queue // by name
	moves       []*moveTask
	deleted     map[string]time.Time // when a queue of that name was deleted
	serial      uint64               // last number given to a queue, message or sequence
	maxInFlight int
	disturbed   []*queue // changed by the call under way; see update
}

// New returns a server without queues. Create it inside the synctest bubble that uses it, and Close it there.
func New(optFns ...func(*Options)) *Server {
	var o Options
	for _, f := range optFns {
		f(&o)
	}
	o.Region = cmp.Or(o.Region, "us-east-1")
	o.Account = cmp.Or(o.Account, "000000000000")
	o.BaseURL = strings.TrimSuffix(cmp.Or(o.BaseURL, "https://sqs."+o.Region+".amazonaws.com"), "/")
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{
		opts:        o,
		rng:         rand.New(rand.NewPCG(o.Seed, 0x6d656d737173)),
		queues:      map[string]*queue{},
		deleted:     map[string]time.Time{},
		maxInFlight: maxInFlight,
	}
	s.Server = awsjson.New(awsjson.Service{
		Target:       "AmazonSQS",
		Namespace:    "com.amazonaws.sqs",
		InternalCode: "InternalFailure",
		Operations:   s.operations(),
		Injected:     injected,
		Now:          o.Now,
	}, o.Faults)
	return s
}

var _ http.Handler = (*Server)(nil)
var _ http.RoundTripper = (*Server)(nil)

// update runs f with the server locked and then hands messages that f made receivable to the long polls that wait for
// them. Settling one queue can move messages to another (redrive), so it goes on until nothing changes.
func (s *Server) update(f func(now time.Time) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	err := f(now)
	for len(s.disturbed) > 0 {
		q := s.disturbed[0]
		s.disturbed = s.disturbed[1:]
		q.disturbed = false
		q.settle(now)
	}
	return err
}

func (s *Server) nextSerial() uint64 {
	s.serial++
	return s.serial
}
