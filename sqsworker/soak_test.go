package sqsworker

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
)

const soakHeap = 1 << 20 // a leak of a few bytes for each message is more

// spring is a queue that always has messages and stores little, so that the memory measured is the worker's. One call in a
// hundred fails, and about one entry of a delete in 97. Messages that are given back come again.
type spring struct {
	Client
	fifo bool

	mu       sync.Mutex
	next     int
	left     int // messages to hand out
	calls    int
	handed   map[string]int // in flight: receive count
	again    []string
	counts   map[string]int // receives so far, of those that were given back
	finished int
}

var errSpring = fmt.Errorf("connection reset")

func (s *spring) call() error {
	time.Sleep(3 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.calls%100 == 0 {
		return errSpring
	}
	return nil
}

func (s *spring) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if err := s.call(); err != nil {
		return nil, err // nothing was handed out
	}
	s.mu.Lock()
	out := &sqs.ReceiveMessageOutput{}
	for len(out.Messages) < int(in.MaxNumberOfMessages) {
		id := ""
		switch {
		case len(s.again) > 0:
			id, s.again = s.again[0], s.again[1:]
		case s.left > 0:
			s.left--
			id = strconv.Itoa(s.next)
			s.next++
		}
		if id == "" {
			break
		}
		s.counts[id]++
		s.handed[id] = s.counts[id]
		m := sqstypes.Message{
			MessageId: &id, Body: &id, ReceiptHandle: aws.String(id), Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(s.counts[id])},
		}
		if s.fifo {
			n, _ := strconv.Atoi(id)
			m.Attributes["MessageGroupId"] = fmt.Sprintf("g%d-%d", n/100, n%50) // two messages each
		}
		out.Messages = append(out.Messages, m)
	}
	s.mu.Unlock()
	if len(out.Messages) == 0 {
		time.Sleep(time.Duration(in.WaitTimeSeconds) * time.Second)
	}
	return out, nil
}

func (s *spring) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if err := s.call(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &sqs.DeleteMessageBatchOutput{}
	for _, e := range in.Entries {
		if (s.calls+len(out.Successful))%97 == 0 {
			out.Failed = append(out.Failed, sqstypes.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InternalError")})
			continue
		}
		if s.handed[*e.ReceiptHandle] > 0 {
			s.finished++
		}
		delete(s.handed, *e.ReceiptHandle)
		delete(s.counts, *e.ReceiptHandle)
		out.Successful = append(out.Successful, sqstypes.DeleteMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func (s *spring) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if err := s.call(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		if id := *e.ReceiptHandle; e.VisibilityTimeout < 30 && s.handed[id] > 0 { // a release, not an extension
			delete(s.handed, id)
			s.again = append(s.again, id)
		}
		out.Successful = append(out.Successful, sqstypes.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func (s *spring) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"QueueArn": "arn"}}, nil
}

// TestSoak runs messages through a worker, failures, slow handlers and panics among them, and compares memory and
// goroutines early with those at the end. SOAK=1 takes a million of each kind of queue.
func TestSoak(t *testing.T) {
	n := 100_000
	if os.Getenv("SOAK") != "" {
		n = 1_000_000
	}
	for _, url := range []string{goodURL, goodURL + ".fifo"} {
		must.Run(t, url[strings.LastIndexByte(url, '/')+1:], func(t *testing.T) { soak(t, url, n) })
	}
}

// footprint is what a worker uses after it has been busy.
type footprint struct {
	heap       uint64
	goroutines int
}

func soak(t *testing.T, url string, n int) {
	sample := max(n/10, 50_000) // the set of finished messages is full by then
	s := &spring{fifo: host.IsFIFO(url), left: sample, handed: map[string]int{}, counts: map[string]int{}}
	w, err := New(s, url, func(_ context.Context, m *sqsonce.Message) error {
		id, err := strconv.Atoi(m.Body)
		if err != nil {
			return err
		}
		switch {
		case id%1000 == 7:
			time.Sleep(time.Minute) // needs extensions
		case id%300 == 5 && m.ReceiveCount == 1:
			return errTest
		case id%700 == 9 && m.ReceiveCount == 1:
			panic("soak")
		}
		return nil
	}, func(o *Options) {
		o.Concurrency, o.MaxInFlight, o.MaxAttempts = 100, 300, 1
		o.Backoff = func(int) time.Duration { return time.Second }
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()

	run := func(most int) footprint {
		s.mu.Lock()
		s.left += most - s.next - s.left
		s.mu.Unlock()
		for done := 0; done < most; {
			time.Sleep(time.Second)
			wantSum(t, w.Stats())
			s.mu.Lock()
			done = s.finished
			s.mu.Unlock()
		}
		time.Sleep(10 * time.Minute) // idle: nothing of the work may remain
		synctest.Wait()
		runtime.GC()
		runtime.GC() // for what finalizers and pools held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return footprint{m.HeapAlloc, runtime.NumGoroutine()}
	}
	early := run(sample)
	late := run(n)
	cancel()
	if err := <-result; err != nil {
		t.Errorf("Run: %v", err)
	}
	st := w.Stats()
	t.Logf("%d messages: %d KiB and %d goroutines after %d, %d KiB and %d in the end; %+v",
		n, early.heap>>10, early.goroutines, sample, late.heap>>10, late.goroutines, st)
	if late.heap > early.heap+soakHeap {
		t.Errorf("the heap grew from %d to %d KiB", early.heap>>10, late.heap>>10)
	}
	if late.goroutines > early.goroutines {
		t.Errorf("%d goroutines, %d at first", late.goroutines, early.goroutines)
	}
	if int(st.Done) != n || st.LeasesLost != 0 || st.Undeleted != 0 || len(s.handed)+len(s.counts) != 0 {
		t.Errorf("%d handled of %d; %d in flight; %+v", st.Done, n, len(s.handed), st)
	}
}
