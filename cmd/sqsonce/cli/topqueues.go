package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/queues"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	queueTimeout = 5 * time.Second // of what AWS is asked for one snapshot
	agesEvery    = time.Minute     // CloudWatch has one value a minute, and each costs
	mostReported = 100             // queues that only workers name
	asksAtOnce   = 16
	trendOf      = time.Minute
	leastTrend   = 10 * time.Second // of less than that SQS's approximations are no trend
)

// errNotConnected is that there is no Region, or there are no credentials.
var errNotConnected = errors.New("queues cannot be asked")

// queueWatch reads queues again and again. It calls GetQueueUrl, GetQueueAttributes and GetMetricData, and nothing else.
type queueWatch struct {
	s     *services // nil: see err
	err   error
	named []string // by flags

	mu     sync.Mutex
	urls   map[string]string // of queues by what named them: flags, ARNs of dead-letter queues
	trends map[string][]trendPoint

	ages    map[string]queues.Age // by key
	groups  map[string]queues.Groups
	agesAt  time.Time       // when they were asked for
	noAges  string          // why there are none
	foreign map[string]bool // by key: queues of other accounts, which have none here
}

type trendPoint struct {
	at    time.Time
	total int
}

func newQueueWatch(s *services, err error, named []string) *queueWatch {
	w := &queueWatch{named: named, urls: map[string]string{}, trends: map[string][]trendPoint{}}
	if err != nil {
		w.err = fmt.Errorf("%w: %w", errNotConnected, err)
	} else {
		w.s = s.impatient()
	}
	return w
}

// read returns the queues that flags name, then those that workers name.
func (w *queueWatch) read(ctx context.Context, workers []*workerRow) (rows []*queueRow, notes []string) {
	rows = []*queueRow{} // [] in JSON
	if w.err != nil {
		for _, name := range w.named {
			rows = append(rows, &queueRow{Queue: host.QueueName(name), named: true, err: w.err, Error: w.err.Error()})
		}
		return rows, []string{w.err.Error()}
	}
	within, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	names := slices.Clone(w.named)
	for _, of := range workers {
		switch name := of.queueName(); {
		case name == "" || slices.Contains(names, name):
		case len(names) == len(w.named)+mostReported:
			notes = []string{fmt.Sprintf("the workers name more queues than the %d that are asked", mostReported)}
		default:
			names = append(names, name)
		}
	}
	asked := make([]*queueRow, len(names))
	host.InParallel(len(names), asksAtOnce, func(i int) { asked[i] = w.find(within, names[i], i < len(w.named)) })
	byName, byKey := map[string]*queueRow{}, map[string]*queueRow{}
	for i, row := range asked {
		key := names[i]
		if row.URL != "" {
			key = w.key(row.URL)
		}
		if byKey[key] == nil {
			rows, byKey[key] = append(rows, row), row
		}
		byName[names[i]] = byKey[key]
	}
	for _, of := range workers {
		if row := byName[of.queueName()]; row != nil && of.Done != nil {
			sum := *of.Done
			if row.Done != nil {
				sum += *row.Done
			}
			row.Done = &sum
		}
	}
	var known []queueRow // readOne changes the rows
	for _, row := range rows {
		if row.err == nil {
			known = append(known, queueRow{Queue: row.Queue, URL: row.URL})
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { w.readAges(within, known) })
	host.InParallel(len(rows), asksAtOnce, func(i int) { w.readOne(within, rows[i]) })
	wg.Wait()
	for _, row := range rows {
		w.finish(row)
	}
	return rows, notes
}

// find finds the queue that a flag or a worker names. A worker without Options.Identifiers says its name only: that of this account is
// meant.
func (w *queueWatch) find(ctx context.Context, name string, named bool) *queueRow {
	row := &queueRow{Queue: host.QueueName(name), named: named}
	if row.URL, row.err = w.url(ctx, name); row.err == nil {
		row.Queue = host.QueueName(row.URL)
	} else if _, none := errors.AsType[*exitError](row.err); none && !named && !strings.Contains(name, "/") {
		row.err = fmt.Errorf("%w. If it is of another account, set Options.Identifiers of the worker's status handler", row.err)
	}
	return row
}

// key is the same for all URLs of a queue: those of VPC endpoints and of emulators have other hosts. All queues are asked in one
// Region.
func (w *queueWatch) key(queueURL string) string {
	if arn, ok := host.ARNOfURL(queueURL); ok && arn.Region != w.s.region {
		return arn.String()
	}
	if u, err := url.Parse(queueURL); err == nil {
		return u.Path
	}
	return queueURL
}

// url is services.queueURL, asked until it has succeeded.
func (w *queueWatch) url(ctx context.Context, queue string) (string, error) {
	w.mu.Lock()
	known, ok := w.urls[queue]
	w.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := w.s.queueURL(ctx, queue)
	if err == nil {
		w.mu.Lock()
		w.urls[queue] = found
		w.mu.Unlock()
	}
	return found, err
}

func (w *queueWatch) readOne(ctx context.Context, row *queueRow) {
	if row.err != nil {
		return
	}
	counts, arn, err := queues.Read(ctx, w.s.sqs, row.URL)
	if row.err = err; err != nil {
		return
	}
	row.Visible, row.InFlight, row.Delayed = &counts.Visible, &counts.InFlight, &counts.Delayed
	w.trend(row, counts.Total())
	if arn == "" {
		return
	}
	row.DLQ = arn[strings.LastIndexByte(arn, ':')+1:]
	if row.DLQURL, row.dlqErr = w.url(ctx, arn); row.dlqErr != nil {
		return
	}
	dead, _, err := queues.Read(ctx, w.s.sqs, row.DLQURL)
	if row.dlqErr = err; err == nil {
		total := dead.Total()
		row.InDLQ = &total
	}
}

// trend is how the queue has changed in the last minute, and how long it lasts if that goes on.
func (w *queueWatch) trend(row *queueRow, total int) {
	now, key := time.Now(), w.key(row.URL)
	w.mu.Lock()
	defer w.mu.Unlock()
	points := append(w.trends[key], trendPoint{now, total})
	for now.Sub(points[0].at) > trendOf {
		points = points[1:]
	}
	w.trends[key] = points
	passed := now.Sub(points[0].at)
	if passed < leastTrend {
		return
	}
	change := float64(total-points[0].total) / passed.Seconds()
	row.Change = &change
	if change < 0 && total > 0 {
		left := float64(total) / -change
		row.EmptyIn = &left
	}
}

// readAges asks CloudWatch, once a minute at most. A queue that came since waits for the next time.
func (w *queueWatch) readAges(ctx context.Context, known []queueRow) {
	if len(known) == 0 || !w.agesAt.IsZero() && time.Since(w.agesAt) < agesEvery {
		return
	}
	w.ages, w.groups, w.agesAt, w.noAges, w.foreign = map[string]queues.Age{}, map[string]queues.Groups{}, time.Now(), "", map[string]bool{}
	if w.s.cloudwatch == nil {
		w.noAges = "no client for CloudWatch"
		return
	}
	foreign := make([]bool, len(known))
	host.InParallel(len(known), asksAtOnce, func(i int) { foreign[i] = w.isForeign(ctx, known[i]) })
	var names, keys []string
	for i, row := range known {
		if key := w.key(row.URL); foreign[i] {
			w.foreign[key] = true
		} else {
			names, keys = append(names, row.Queue), append(keys, key)
		}
	}
	if len(names) == 0 {
		return
	}
	ages, groups, err := queues.AgesAndGroups(ctx, w.s.cloudwatch, names, names)
	if err != nil {
		w.noAges = reason(err)
	}
	for i, name := range names {
		if age, ok := ages[name]; ok {
			w.ages[keys[i]] = age
		}
		if g, ok := groups[name]; ok {
			w.groups[keys[i]] = g
		}
	}
}

// isForeign reports whether a queue is of another account. CloudWatch has metrics by name, of the account that has the credentials,
// where the name means another queue or none. A queue that was named by its name has been asked for already.
func (w *queueWatch) isForeign(ctx context.Context, row queueRow) bool {
	own, err := w.url(ctx, row.Queue)
	if _, none := errors.AsType[*exitError](err); none {
		return true
	}
	return err == nil && w.key(own) != w.key(row.URL)
}

func (w *queueWatch) finish(row *queueRow) {
	if row.err != nil {
		row.Error = reason(row.err)
		return
	}
	if row.dlqErr != nil {
		row.DLQError = reason(row.dlqErr)
	}
	key := w.key(row.URL)
	if g := w.groups[key]; !g.At.IsZero() {
		row.Noisy = &g.Noisy
	}
	if g := w.groups[key]; !g.Quiet.At.IsZero() {
		seconds := g.Quiet.Age.Seconds()
		row.OldestQuiet = &seconds
	}
	if age, ok := w.ages[key]; ok {
		seconds := age.Age.Seconds()
		row.Oldest, row.OldestAt = &seconds, age.At
	} else if w.foreign[key] {
		row.NoOldest = "the metrics of another account's queue cannot be seen"
	} else if row.NoOldest = w.noAges; row.NoOldest == "" {
		row.NoOldest = "CloudWatch has no value of the last " + shown.Brief(queues.AgeWindow, false)
	}
}

// reason is an error in a few words.
func reason(err error) string {
	switch {
	case errors.Is(err, errNotConnected):
		return err.Error() // the call that failed is one for credentials
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", queueTimeout)
	}
	return awserr.Reason(err)
}
