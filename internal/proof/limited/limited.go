//go:build unix

// Package limited kills processes of workers with a limiter, and checks when their handlers start: the tests of the stores run it on
// their counters.
package limited

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/proof/process"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// envWorker is the environment variable that makes a process of the test binary a worker. Its value is settings.
const envWorker = "LIMITED_WORKER"

type settings struct {
	Test             string // its name
	SQS, URL, Oracle string
	Place            json.RawMessage
}

const (
	workers = 4
	rate    = 20 // starts a second of the messages of "fast", and a burst of as many
	slots   = 2  // handlers of "slow" at once
	// freed is how long after a kill the next handler starts in a slot: its lease of 30 s, the store's grace, and a try of another process.
	freed = 40 * time.Second
)

// note is the start or the end of a handler, by the clock of all processes.
type note struct {
	PID   int
	Group string
	At    time.Time
	End   bool
}

// Run has processes handle messages within limits that they share, and kills one after another. where returns where the counter is, as
// JSON for the processes. It takes 12 s, with SOAK 5 min.
func Run[P any](t *testing.T, where func(t *testing.T) P, counter func(t *testing.T, place P) limit.Counter) {
	if text := os.Getenv(envWorker); text != "" {
		var s settings
		var place P
		must.Do(t, json.Unmarshal([]byte(text), &s))
		must.Do(t, json.Unmarshal(s.Place, &place))
		s.work(t, counter(t, place))
		return
	}
	length := 12 * time.Second
	if os.Getenv("SOAK") != "" {
		length = 5 * time.Minute
	}
	queue := memsqs.New(func(o *memsqs.Options) { o.NoRecord = true })
	t.Cleanup(queue.Close)
	var o oracle
	aws, heard := httptest.NewServer(queue), httptest.NewServer(&o)
	t.Cleanup(aws.Close)
	t.Cleanup(heard.Close)
	s := settings{Test: t.Name(), SQS: aws.URL, Oracle: heard.URL, Place: must.Get(json.Marshal(where(t)))(t)}
	s.fill(t, int(length/time.Second)*rate)
	env := []string{envWorker + "=" + string(must.Get(json.Marshal(s))(t))}
	begun := time.Now()
	var seats sync.WaitGroup
	for range workers {
		seats.Go(func() {
			for time.Since(begun) < length {
				p, err := process.Start(t.Context(), process.Options{Args: []string{"-test.run", "^" + strings.ReplaceAll(s.Test, "/", "$/^") + "$"}, Env: env})
				if err != nil {
					t.Error(err)
					return
				}
				if !p.Live(min(3*time.Second+rand.N(4*time.Second), length-time.Since(begun))) {
					t.Errorf("a worker ended by itself: %v", p.Wait())
				}
				if err := p.Kill(); err != nil {
					t.Error(err)
				}
				_ = p.Wait() // killed
				o.killed(p.Pid)
			}
		})
	}
	seats.Wait()
	o.check(t, begun, length)
}

func (s settings) client() *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &s.SQS, HTTPClient: sqsworker.HTTPClient(40),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
}

// fill creates the queue, with more messages than the processes may handle.
func (s *settings) fill(t *testing.T, n int) {
	client := s.client()
	out := must.Get(client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("limited"), Attributes: map[string]string{"VisibilityTimeout": "5"}}))(t)
	s.URL = *out.QueueUrl
	for i := range (n + 200) / 10 * 2 {
		group, in := []string{"fast", "slow"}[i%2], &sqs.SendMessageBatchInput{QueueUrl: &s.URL}
		for j := range 10 {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(j)), MessageBody: aws.String("x"), MessageGroupId: &group})
		}
		must.Get(client.SendMessageBatch(t.Context(), in))(t)
	}
}

// work is a process until its parent ends it.
func (s settings) work(t *testing.T, c limit.Counter) {
	process.EndWithParent()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	only := func(group string) func(*sqsonce.Message) string {
		return func(m *sqsonce.Message) string {
			if m.Group == group {
				return group
			}
			return ""
		}
	}
	l := must.Get(limit.New([]limit.Rule{
		{Name: "rate", Key: only("fast"), Plan: limit.Plan{Rate: limit.Rate{N: rate}}, Counter: c},
		{Name: "slots", Key: only("slow"), Plan: limit.Plan{Concurrency: slots}, Counter: c},
	}))(t)
	post := func(n note) error {
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		resp, err := http.Post(s.Oracle, "application/json", bytes.NewReader(text))
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	w := must.Get(sqsworker.New(s.client(), s.URL, limit.Handler(l, func(ctx context.Context, m *sqsonce.Message) error {
		n := note{PID: os.Getpid(), Group: m.Group, At: time.Now()}
		if err := post(n); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
		n.At, n.End = time.Now(), true
		return post(n)
	}), func(o *sqsworker.Options) { o.VisibilityTimeout, o.WaitTime = 5*time.Second, time.Second }))(t)
	must.Do(t, w.Run(t.Context()))
}

// oracle hears of the handlers of all processes.
type oracle struct {
	mu    sync.Mutex
	notes []note
	kills []note
}

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n note
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notes = append(o.notes, n)
}

// killed ends the handlers of a process.
func (o *oracle) killed(pid int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kills = append(o.kills, note{PID: pid, At: time.Now()})
}

// check checks the bounds: in any T at most rate x (T + 1 s) + burst handlers start, and no more than the slots run at once. A second
// more is for a busy machine.
func (o *oracle) check(t *testing.T, begun time.Time, length time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.SortFunc(o.notes, func(a, b note) int { return a.At.Compare(b.At) })
	const step = time.Second / rate
	var next time.Time
	fast, slow, last := 0, 0, begun
	running, most := map[int]int{}, 0
	kills := o.kills
	for _, n := range o.notes {
		for len(kills) > 0 && kills[0].At.Before(n.At) {
			delete(running, kills[0].PID)
			kills = kills[1:]
		}
		switch {
		case n.Group == "slow" && n.End:
			running[n.PID]--
		case n.Group == "slow":
			slow++
			running[n.PID]++
			sum := 0
			for _, r := range running {
				sum += r
			}
			most = max(most, sum)
			if wait := n.At.Sub(last); wait > freed {
				t.Errorf("no handler of a slot started for %s, want %s at most", wait, freed)
			}
			last = n.At
		case !n.End:
			if fast++; next.Before(n.At) {
				next = n.At
			}
			if next = next.Add(step); next.Sub(n.At) > rate*step+2*time.Second {
				t.Errorf("start %d is %s too early", fast, next.Sub(n.At)-rate*step-2*time.Second)
			}
		}
	}
	if wait := time.Since(last); wait > freed {
		t.Errorf("no handler of a slot has started for %s, want %s at most", wait, freed)
	}
	t.Logf("%d starts of %d, and %d in slots, %d at once; %d processes killed", fast, rate*int(length/time.Second), slow, most, len(o.kills))
	if most > slots || slow == 0 {
		t.Errorf("%d handlers ran in slots, at most %d at once; want some, and %d", slow, most, slots)
	}
	if least := rate * int(length/time.Second) / 4; fast < least {
		t.Errorf("%d handlers have started, want at least %d", fast, least)
	}
}
