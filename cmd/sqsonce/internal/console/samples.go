package console

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/queues"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	sampleEvery = 5 * time.Second
	sampleKept  = time.Hour
	mostSamples = int(sampleKept / sampleEvery)
	// readTimeout bounds the calls of a sample: they have ended when the next one begins.
	readTimeout = 4 * time.Second
	readsAtOnce = 16
	// ageFresh is for how long an age of CloudWatch is drawn. It has a new one each minute, and is late by a few.
	ageFresh = 5 * time.Minute
)

// figure is one of a sample's.
type figure int

const (
	visibleNow figure = iota
	inFlight
	delayed
	age // of the oldest message, in seconds
	deadVisible
	deadInFlight
	done // handlers a second, of all workers of the queue
	failed
	figures
)

// sample has the figures of a queue at one time. One that is not known is NaN.
type sample struct {
	at     time.Time
	values [figures]float64
}

func newSample(at time.Time) sample {
	s := sample{at: at}
	for i := range s.values {
		s.values[i] = math.NaN()
	}
	return s
}

// queueState is what is known of a queue.
type queueState struct {
	Main, Dead queues.Counts // as of At
	At         time.Time
	Err        error // why the last read has failed, or part of it; nil: it has not
	Since      time.Time
	Ages       ages
	samples    []sample // of the last hour
}

// sampler reads the figures of all queues and workers while the console runs. Nothing is received.
type sampler struct {
	opts  Options
	log   *slog.Logger
	fleet *fleet.Fleet

	mu            sync.Mutex
	queues        map[string]*queueState // by name
	agesErr       error
	read          workersRead // the last one
	runningWanted time.Time   // when somebody has looked at them last
}

func newSampler(opts Options, log *slog.Logger) *sampler {
	p := &sampler{opts: opts, log: log, fleet: &fleet.Fleet{Client: opts.HTTP, Targets: opts.Workers}, queues: map[string]*queueState{}}
	for _, q := range opts.Queues {
		p.queues[q.Name] = &queueState{}
	}
	return p
}

// run samples until ctx ends.
func (p *sampler) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { p.every(ctx, sampleEvery, p.sample) })
	wg.Go(func() { p.every(ctx, ageEvery, p.readAges) })
	wg.Wait()
}

func (p *sampler) every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		contain(p.log, func() { f(ctx) })
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// sample reads all queues and workers once, and adds a sample to each queue.
func (p *sampler) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	begun := time.Now().Round(0) // by the calendar, so that where the computer has slept there is a gap
	var wg sync.WaitGroup
	wg.Go(func() { contain(p.log, func() { p.readWorkers(ctx) }) })
	host.InParallel(len(p.opts.Queues), readsAtOnce, func(i int) {
		contain(p.log, func() { p.readQueue(ctx, p.opts.Queues[i]) })
	})
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.opts.Queues {
		p.queues[q.Name].add(p.newSample(q, begun))
	}
}

func (p *sampler) readQueue(ctx context.Context, q Queue) {
	main, dead, err := p.readCounts(ctx, q)
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.queues[q.Name]
	switch {
	case err == nil:
		state.Main, state.Dead, state.At, state.Err = main, dead, time.Now(), nil
	case state.Err == nil:
		state.Since = time.Now()
		fallthrough
	default:
		state.Err = err
	}
}

// readCounts reads both queues: figures of two times would not go together.
func (p *sampler) readCounts(ctx context.Context, q Queue) (main, dead queues.Counts, err error) {
	if main, _, err = queues.Read(ctx, p.opts.SQS, q.URL); err != nil {
		return main, dead, fmt.Errorf("%s: %s", q.Name, reason(err))
	}
	if q.DLQURL == "" {
		return main, dead, nil
	}
	if dead, _, err = queues.Read(ctx, p.opts.SQS, q.DLQURL); err != nil {
		err = fmt.Errorf("%s: %s", q.DLQName, reason(err))
	}
	return main, dead, err
}

// newSample has what was read since begun. What was not is a gap.
func (p *sampler) newSample(q Queue, begun time.Time) sample {
	s, state := newSample(begun), p.queues[q.Name]
	if !state.At.Before(begun) {
		s.values[visibleNow], s.values[inFlight], s.values[delayed] = float64(state.Main.Visible), float64(state.Main.InFlight), float64(state.Main.Delayed)
		if q.DLQURL != "" {
			s.values[deadVisible], s.values[deadInFlight] = float64(state.Dead.Visible), float64(state.Dead.InFlight)
		}
	}
	if a := state.Ages.Main; !a.At.IsZero() && begun.Sub(a.At) < ageFresh {
		s.values[age] = a.Age.Seconds()
	}
	if !p.read.at.Before(begun) {
		if r, ok := p.read.rate(q.Name); ok {
			s.values[done], s.values[failed] = r.Done, r.Failed
		}
	}
	return s
}

// add forgets what is older than an hour.
func (q *queueState) add(s sample) {
	first := 0
	for first < len(q.samples) && (s.at.Sub(q.samples[first].at) >= sampleKept || len(q.samples)-first >= mostSamples) {
		first++
	}
	q.samples = append(slices.Delete(q.samples, 0, first), s)
}

// state returns what is known of a queue now.
func (p *sampler) state(queue string) queueState {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := *p.queues[queue]
	state.samples = slices.Clone(state.samples)
	return state
}

// ageErr is why CloudWatch has said nothing, the last time that it was asked.
func (p *sampler) ageErr() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agesErr
}

const (
	// ageEvery is how often CloudWatch is asked: it has one value a minute, and each costs.
	ageEvery   = time.Minute
	ageTimeout = 20 * time.Second
)

// ages are those of the oldest messages of a queue and its dead-letter queue, where it counts from the move.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
type ages struct {
	Main, Dead queues.Age // without a time: CloudWatch has none
	// Shared says that other queues have the dead-letter queue too. SharedErr: that is not known.
	Shared    bool
	SharedErr error
	Groups    queues.Groups // of the queue
	Read      bool          // once at least
}

// readAges asks CloudWatch for all queues in one call, and SQS whose the dead-letter queues are.
func (p *sampler) readAges(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ageTimeout)
	defer cancel()
	values, groups, err := p.readMetrics(ctx)
	p.mu.Lock()
	p.agesErr = err
	p.mu.Unlock()
	for _, q := range p.opts.Queues {
		shared, sharedErr := p.isShared(ctx, q)
		p.mu.Lock()
		a := &p.queues[q.Name].Ages
		if err == nil {
			a.Main, a.Dead, a.Groups = values[q.Name], values[q.DLQName], groups[q.Name]
		}
		a.Shared, a.SharedErr, a.Read = shared, sharedErr, true
		p.mu.Unlock()
	}
}

func (p *sampler) isShared(ctx context.Context, q Queue) (bool, error) {
	if q.DLQURL == "" {
		return false, nil
	}
	out, err := p.opts.SQS.ListDeadLetterSourceQueues(ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &q.DLQURL})
	if err != nil {
		return false, err
	}
	return len(out.QueueUrls) > 1 || aws.ToString(out.NextToken) != "", nil
}

// readMetrics returns the newest values, by the names of the queues.
func (p *sampler) readMetrics(ctx context.Context) (map[string]queues.Age, map[string]queues.Groups, error) {
	if p.opts.CloudWatch == nil {
		return nil, nil, nil
	}
	var sources, names []string
	for _, q := range p.opts.Queues {
		sources = append(sources, q.Name)
		if names = append(names, q.Name); q.DLQName != "" {
			names = append(names, q.DLQName)
		}
	}
	return queues.AgesAndGroups(ctx, p.opts.CloudWatch, names, sources)
}
