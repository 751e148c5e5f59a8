package memsqs

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// Options configure [New]. The zero value of each field is its default.
type Options struct {
	// Seed makes message IDs, reordering and duplicates repeatable.
	// Default: 0.
	Seed uint64
	// Faults is the plan of faults to inject.
	// Default: the empty plan.
	Faults fault.Plan
	// Now is the server's clock for visibility, delay, retention and deduplication. Long polls wait on Go's timers. After a clock
	// has jumped, messages become visible at the next call, and a poll that already waits does not wake for them.
	// Default: time.Now, which is virtual in a synctest bubble.
	Now func() time.Time
	// Region is the region in queue ARNs.
	// Default: "us-east-1".
	Region string
	// Account is the account ID in queue ARNs and URLs.
	// Default: "000000000000".
	Account string
	// BaseURL is the part of queue URLs before the account ID. Clients that send to the queue URL itself, instead of to their
	// endpoint, need the server's address here.
	// Default: "https://sqs.<Region>.amazonaws.com".
	BaseURL string
	// OfRequest makes queue URLs begin with the host that the client has called, by HTTP, because a server on all addresses of a
	// machine has several. BaseURL is not used then.
	// Default: false.
	OfRequest bool
	// Reorder is how many positions early or late a standard queue may deliver a message, as AWS may. 0 keeps the order of
	// sending, which AWS does not promise.
	// Default: 0.
	Reorder int
	// Duplicates is the probability that a standard queue delivers a received message once more, as AWS does when one of its
	// replicas missed the receive.
	// Default: 0. Limits: 0 to 1.
	Duplicates float64
	// StrictHandles makes ChangeMessageVisibility fail in two cases. A receipt handle that a later receive has replaced is an
	// InvalidParameterValue. A handle whose visibility timeout has ended is the documented MessageNotInflight. Users have
	// reported these errors, and AWS was recorded to answer with success, so test a consumer under both. Neither answer proves
	// that the message is, or is not, in flight for it.
	// Default: false, both succeed. The replaced handle changes the visibility timeout of the latest receive. The handle whose
	// timeout has ended doesn't change anything.
	StrictHandles bool
	// NoPurgeDelay allows a PurgeQueue within 60 s of the last one, and a CreateQueue within 60 s of the deletion of a queue of
	// that name. AWS refuses both.
	// Default: false.
	NoPurgeDelay bool
	// NoRecord leaves Calls empty, for a server that runs for days.
	// Default: false.
	NoRecord bool
}

// Server is an SQS in memory. All methods are safe for concurrent use.
type Server struct {
	*awsjson.Server
	opts Options

	// mu guards every queue: a redrive changes two of them.
	mu          sync.Mutex
	rng         *rand.Rand
	queues      map[string]*queue // by name
	moves       []*moveTask
	deleted     map[string]time.Time // when a queue of that name was deleted
	serial      uint64               // the last number given to a queue, message, receive or sequence
	maxInFlight int
	changed     []*queue // queues changed by the current update
}

// New returns a server without queues. Create it inside the synctest bubble that uses it, and close it there.
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
		Name:         "memsqs",
		Target:       "AmazonSQS",
		Namespace:    "com.amazonaws.sqs",
		InternalCode: "InternalFailure",
		Operations:   s.operations(),
		Injected:     injected,
		Now:          o.Now,
		NoRecord:     o.NoRecord,
		State:        awsjson.State{Save: s.save, Load: s.load},
	}, o.Faults)
	return s
}

var _ http.Handler = (*Server)(nil)
var _ http.RoundTripper = (*Server)(nil)

// update runs f under the lock. Then it gives the messages that f made receivable to the long polls that wait for them.
// Serving the polls of one queue can move messages to another queue (redrive), so update repeats until nothing changes.
func (s *Server) update(f func(now time.Time) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	err := f(now)
	for len(s.changed) > 0 {
		q := s.changed[0]
		s.changed[0] = nil // a deleted queue goes
		s.changed = s.changed[1:]
		q.changed = false
		q.servePolls(now)
	}
	return err
}

// withQueue runs f in an update with the queue of a URL, in the state that it has now.
func (s *Server) withQueue(queueURL string, f func(q *queue, now time.Time) error) error {
	return s.update(func(now time.Time) error {
		q, err := s.queue(queueURL)
		if err != nil {
			return err
		}
		q.advance(now)
		return f(q, now)
	})
}

func (s *Server) nextSerial() uint64 {
	s.serial++
	return s.serial
}

// call is a request and the state of its processing.
type call struct {
	ctx     context.Context // ends with the server
	rule    *fault.Rule
	trace   string // header X-Amzn-Trace-Id
	host    string // that the client has called
	entries int    // for the record of calls
}

type empty struct{}

// operation decodes the input of f. Unknown members are ignored, as on AWS; to one in another case AWS does the same, and a client
// that has mistaken the case is told.
func operation[I, O any](f func(c *call, in *I) (*O, error)) awsjson.Operation {
	members := awsjson.MembersOf[I]()
	return func(ctx context.Context, r awsjson.Request, rule *fault.Rule) (any, awsjson.Cost, error) {
		c := &call{ctx: ctx, rule: rule, trace: r.Trace, host: r.Host, entries: 1}
		in := new(I)
		if len(bytes.TrimSpace(r.Body)) > 0 {
			known, err := members.Decode(r.Body, in)
			if err != nil {
				return nil, awsjson.Cost{Entries: 1}, err
			}
			if !known {
				if path := members.OtherCase(r.Body); path != "" {
					return nil, awsjson.Cost{Entries: 1}, newError("SerializationException", "memsqs does not know the member "+path+": it is known in another case")
				}
			}
		}
		out, err := f(c, in)
		if err != nil {
			return nil, awsjson.Cost{Entries: c.entries}, err
		}
		return out, awsjson.Cost{Entries: c.entries}, nil
	}
}

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

// QueuedMessage is a message in a queue, for the assertions of tests.
type QueuedMessage struct {
	ID, Body, Group, DedupID string
	// ReceiveCount is how many times the message was received.
	ReceiveCount int
	// InFlight is true if the message was received and its visibility timeout has not ended.
	InFlight bool
	// VisibleAt is when the message becomes or became visible.
	VisibleAt time.Time
	// Attributes are the message attributes that have a string value.
	Attributes map[string]string
}

// Messages returns the messages of the queue with that name or URL, in the order of the queue, including delayed ones and those
// in flight. It does not change the queue. For a queue that does not exist it returns nil.
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
			ID: m.id, Body: m.body, Group: m.group, DedupID: m.dedupID, ReceiveCount: m.receives,
			InFlight: m.inFlight() && now.Before(m.visibleAt), VisibleAt: m.visibleAt, Attributes: stringAttributes(m.attrs),
		})
	}
	return out
}

func stringAttributes(attrs map[string]messageAttribute) map[string]string {
	out := map[string]string{}
	for name, a := range attrs {
		if a.StringValue != nil {
			out[name] = *a.StringValue
		}
	}
	return out
}
