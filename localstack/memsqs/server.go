package memsqs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
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

// call is one request being performed.
type call struct {
	ctx   context.Context // ends with the server
	rule  *fault.Rule
	count int // entries, for the record of calls
}

// operation decodes the input of f and encodes its output. Unknown members are ignored, as AWS does.
func operation[I, O any](f func(c *call, in *I) (*O, error)) awsjson.Operation {
	return func(ctx context.Context, body []byte, rule *fault.Rule) (any, awsjson.Cost, error) {
		c := &call{ctx: ctx, rule: rule, count: 1}
		in := new(I)
		if len(bytes.TrimSpace(body)) > 0 {
			if err := json.Unmarshal(body, in); err != nil {
				return nil, awsjson.Cost{Entries: 1}, newError("SerializationException", err.Error())
			}
		}
		out, err := f(c, in)
		if err != nil {
			return nil, awsjson.Cost{Entries: c.count}, err
		}
		return out, awsjson.Cost{Entries: c.count}, nil
	}
}

type empty struct{}

// operations is what the server can do, by name.
func (s *Server) operations() map[string]awsjson.Operation {
	return map[string]awsjson.Operation{
		"CreateQueue":                  operation(s.createQueue),
		"DeleteQueue":                  operation(s.deleteQueue),
		"GetQueueUrl":                  operation(s.getQueueURL),
		"ListQueues":                   operation(s.listQueues),
		"GetQueueAttributes":           operation(s.getQueueAttributes),
		"SetQueueAttributes":           operation(s.setQueueAttributes),
		"PurgeQueue":                   operation(s.purgeQueue),
		"ListDeadLetterSourceQueues":   operation(s.listSources),
		"StartMessageMoveTask":         operation(s.startMove),
		"ListMessageMoveTasks":         operation(s.listMoves),
		"CancelMessageMoveTask":        operation(s.cancelMove),
		"TagQueue":                     operation(s.tagQueue),
		"UntagQueue":                   operation(s.untagQueue),
		"ListQueueTags":                operation(s.listQueueTags),
		"SendMessage":                  operation(s.sendMessage),
		"SendMessageBatch":             operation(s.sendMessageBatch),
		"ReceiveMessage":               operation(s.receiveMessage),
		"DeleteMessage":                operation(s.deleteMessage),
		"DeleteMessageBatch":           operation(s.deleteMessageBatch),
		"ChangeMessageVisibility":      operation(s.changeVisibility),
		"ChangeMessageVisibilityBatch": operation(s.changeVisibilityBatch),
	}
}

// QueuedMessage is a message in a queue, for assertions.
type QueuedMessage struct {
	ID, Body, Group, DedupID string
	// ReceiveCount is how often it was received.
	ReceiveCount int
	// InFlight: received, and its visibility timeout has not ended.
	InFlight bool
	// VisibleAt is when it becomes or became visible.
	VisibleAt time.Time
	// SourceARN is the queue that a message in a dead-letter queue came from.
	SourceARN string
	// Attributes are its message attributes with text values.
	Attributes map[string]string
}

// Messages returns what the queue of that name or URL holds, delayed and in flight included, in the order of the queue.
// It changes nothing. A queue that does not exist has no messages.
func (s *Server) Messages(queue string) []QueuedMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queue[strings.LastIndexByte(queue, '/')+1:]]
	if q == nil {
		return nil
	}
	now := s.opts.Now()
	all := make([]*message, 0, len(q.messages))
	for _, m := range q.messages {
		if now.Before(m.enqueuedAt.Add(q.attrs.Retention)) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *message) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.serial, b.serial)) })
	out := make([]QueuedMessage, 0, len(all))
	for _, m := range all {
		out = append(out, QueuedMessage{
			ID: m.id, Body: m.body, Group: m.group, DedupID: m.dedupID, ReceiveCount: m.receives, SourceARN: m.sourceARN,
			InFlight: m.inFlight() && now.Before(m.visibleAt), VisibleAt: m.visibleAt, Attributes: texts(m.attrs),
		})
	}
	return out
}

func texts(attrs map[string]messageAttribute) map[string]string {
	out := map[string]string{}
	for name, a := range attrs {
		if a.StringValue != nil {
			out[name] = *a.StringValue
		}
	}
	return out
}
