//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// A redrive is killed at any time, and started again, with its journal or without, until the dead-letter queue is empty. All that
// was dead-lettered has its effect, once, and on FIFO in the queue's order. SOAK=1 kills 200 times.
func TestKilledRedrives(t *testing.T) {
	kills, perKill := 20, 20
	if os.Getenv("SOAK") != "" {
		kills, perKill = 200, 8
	}
	for _, queue := range []string{"orders", "orders.fifo"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, queue)
			v := &verdict{effects: map[string]int{}, order: map[string][]string{}}
			want := w.deadLetter(kills*perKill, v)
			v.mended.Store(true)

			killed, journal := 0, ""
			for range kills {
				if w.killOne(&journal) {
					killed++
				}
			}
			held := w.hidden()
			w.eventually("nothing is left", func() bool {
				p := w.redrive(redriveFlags...)
				if code := p.end(); code != 0 && code != 4 {
					t.Fatalf("exit %d: %s", code, p.err)
				}
				w.deleteDone()
				return len(w.stack.MemSQS().Messages(w.dlq)) == 0
			})
			w.eventually("the queue is empty", func() bool { return len(w.stack.MemSQS().Messages(w.queue)) == 0 })
			text := v.text(want)
			t.Logf("%d events, %d of %d redrives killed, %d messages hidden after the last one: %s", len(want), killed, kills, held, text)
			if text != "0 lost, 0 doubled, 0 out of order" || killed < kills/2 {
				t.Error("want 0 lost, 0 doubled, 0 out of order")
			}
		})
	}
}

var redriveFlags = []string{"--all", "--yes", "--unknown", "--hold=10s", "--rate=50", "--canary=0"}

// killOne starts a redrive, and kills it within a second. It reports whether it was killed before its end.
func (w *world) killOne(journal *string) bool {
	flags := redriveFlags
	if *journal != "" && rand.IntN(2) == 0 {
		flags = append(flags[:len(flags):len(flags)], "--journal", *journal)
	}
	p := w.redrive(flags...)
	time.Sleep(rand.N(time.Second))
	if err := p.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.Error(err)
	}
	code := p.end()
	if code != -1 && code != 0 && code != 4 {
		w.Errorf("exit %d: %s", code, p.err)
	}
	*journal = ""
	if _, path, found := strings.Cut(p.err.String(), "was killed before: --journal "); found {
		*journal, _, _ = strings.Cut(path, " ")
	}
	return code == -1
}

// deleteDone deletes what was killed between a send and its delete, and whose event is done. Ten of these would hide the rest of
// their FIFO group.
func (w *world) deleteDone() {
	w.Helper()
	store := testworld.Store(w, w.stack)
	once := must.Get(dedup.New(store, "billing"))(w)
	d := must.Get(ops.Open(context.Background(), w.stack.SQS, w.stack.QueueURL[w.dlq], func(o *ops.Options) { o.Key, o.Store = once.Key, store }))(w)
	must.Get(d.Delete(context.Background(), filepath.Join(w.TempDir(), "done"), func(o *ops.ExportOptions) { o.States = []dedup.RecordState{dedup.StateCompleted} }))(w)
}

// deadLetter has n events end in the dead-letter queue, and returns their bodies in its order: SQS moves the first half when their
// receives are used up, and the consumer rejects the others. It goes on to run.
func (w *world) deadLetter(n int, v *verdict) (bodies []string) {
	w.Helper()
	send := func(from, to int) {
		for i := from; i < to; i++ {
			w.send(w.queue, fmt.Sprintf("g%d-%04d", i%40, i), i)
		}
	}
	send(0, n/2)
	w.eventually("SQS has moved them", func() bool {
		must.Get(w.stack.SQS.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(w.stack.QueueURL[w.queue]), MaxNumberOfMessages: 10}))(w)
		return len(w.stack.MemSQS().Messages(w.queue)) == 0
	})
	testworld.Consume(w, w.stack, testworld.Store(w, w.stack), w.queue, v.handle)
	send(n/2, n)
	w.eventually("all are dead-lettered", func() bool { return len(w.stack.MemSQS().Messages(w.dlq)) == n })
	for _, m := range w.stack.MemSQS().Messages(w.dlq) {
		bodies = append(bodies, m.Body)
	}
	return bodies
}

// verdict is what became of the events.
type verdict struct {
	mended atomic.Bool

	mu      sync.Mutex
	effects map[string]int      // by body
	order   map[string][]string // by group: bodies
}

var errBroken = errors.New("card provider: status 503")

func (v *verdict) handle(_ context.Context, m *sqsonce.Message) error {
	if !v.mended.Load() {
		return sqsonce.Reject(errBroken)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.effects[m.Body]++
	v.order[m.Group] = append(v.order[m.Group], m.Body)
	return nil
}

// text compares the effects with the dead letters, in their order.
func (v *verdict) text(want []string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	lost, doubled, disordered := 0, 0, 0
	for _, body := range want {
		if v.effects[body] == 0 {
			lost++
		}
		if v.effects[body] > 1 {
			doubled++
		}
	}
	for group, bodies := range v.order {
		if group == "" { // a standard queue
			continue
		}
		var inOrder []string
		for _, body := range want {
			if strings.HasPrefix(body, group+"-") {
				inOrder = append(inOrder, body)
			}
		}
		for i, body := range bodies {
			if i >= len(inOrder) || inOrder[i] != body {
				disordered++
			}
		}
	}
	return fmt.Sprintf("%d lost, %d doubled, %d out of order", lost, doubled, disordered)
}
