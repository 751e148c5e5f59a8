package limit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

type order struct{ ID, Tenant string }

func charge(context.Context, order) error { return nil }

// At most ten charges in any second, in all workers and functions together, with their table as the store: (1 s + 2 s) * 3 + 1.
func Example() {
	store := memstore.New()               // in a fleet dynamostore.New(client, table)
	counter := memstore.NewCounter(store) // and dynamostore.NewCounter(store)
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	limits, err := limit.New([]limit.Rule{{
		Name: "payments", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 3, Burst: 1}}, Counter: counter,
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer limits.Close(context.Background()) // after the worker's Run
	handler := limit.Handler(limits, once.Handler(sqsonce.JSON(charge)))

	var outcomes []sqsonce.OutcomeKind
	for i := range 20 { // as a worker or a function calls it
		id := strconv.Itoa(i)
		m := &sqsonce.Message{ID: id, Body: `{"ID": "` + id + `"}`, QueueARN: "arn:aws:sqs:us-east-1:123456789012:orders", ReceiveCount: 1}
		outcomes = append(outcomes, sqsonce.OutcomeOf(handler(context.Background(), m)).Kind)
	}
	fmt.Println("the first:", outcomes[0])
	fmt.Println("the last:", outcomes[19])
	// Output:
	// the first: done
	// the last: postponed
}

// At most twenty messages a second are received from a queue, by all workers together.
func ExampleLimiter_Intake() {
	var client *sqs.Client       // from sqs.NewFromConfig
	var store *dynamostore.Store // from dynamostore.New
	handler := func(context.Context, *sqsonce.Message) error { return nil }
	limits, err := limit.New([]limit.Rule{{
		Name: "import", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 20}}, Counter: dynamostore.NewCounter(store),
	}})
	if err != nil {
		log.Fatal(err)
	}
	intake, err := limits.Intake("import")
	if err != nil {
		log.Fatal(err)
	}
	w, err := sqsworker.New(client, os.Getenv("QUEUE_URL"), handler, func(o *sqsworker.Options) { o.Intake = intake })
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// Three messages of each tenant, the MessageGroupId, run at once.
func ExampleRule() {
	limits, err := limit.New([]limit.Rule{
		{Name: "tenant", Plan: limit.Plan{Concurrency: 3}},
	})
	if err != nil {
		log.Fatal(err)
	}
	release := make(chan struct{})
	handler := limit.Handler(limits, func(context.Context, *sqsonce.Message) error { <-release; return nil })
	answers := make(chan error)
	for range 4 {
		go func() { answers <- handler(context.Background(), &sqsonce.Message{Group: "acme", ReceiveCount: 1}) }()
	}
	fmt.Println(sqsonce.OutcomeOf(<-answers).Kind) // the other three still run
	close(release)
	fmt.Println(<-answers, <-answers, <-answers)
	// Output:
	// postponed
	// <nil> <nil> <nil>
}

// Premium tenants may do more than others. The plans change while the worker runs.
func ExampleRule_planOf() {
	var plans atomic.Pointer[map[string]limit.Plan] // read again from your database each minute
	plans.Store(&map[string]limit.Plan{
		"acme":     {Concurrency: 20},
		"internal": {}, // any number
	})
	rule := limit.Rule{Name: "tenant", PlanOf: func(tenant string) limit.Plan {
		if plan, ok := (*plans.Load())[tenant]; ok {
			return plan
		}
		return limit.Plan{Concurrency: 3, Rate: limit.Rate{N: 100, Per: time.Minute}}
	}}
	limits, err := limit.New([]limit.Rule{rule})
	if err != nil {
		log.Fatal(err)
	}
	states, release := make(chan string), make(chan struct{})
	handler := limit.Handler(limits, func(_ context.Context, m *sqsonce.Message) error {
		states <- m.Group + " runs"
		<-release
		return nil
	})
	for _, tenant := range []string{"acme", "other"} {
		for range 4 {
			go func() {
				err := handler(context.Background(), &sqsonce.Message{Group: tenant, ReceiveCount: 1})
				if sqsonce.OutcomeOf(err).Kind == sqsonce.OutcomePostponed {
					states <- tenant + " waits"
				}
			}()
		}
	}
	count := map[string]int{}
	for range 8 {
		count[<-states]++
	}
	close(release)
	fmt.Println("acme waits:", count["acme waits"] > 0)
	fmt.Println("other waits:", count["other waits"] > 0) // at most three of its four messages run at once
	// Output:
	// acme waits: false
	// other waits: true
}

// retryAfter reads a number of seconds or a date; 30 s if it is neither, or past.
func retryAfter(header string) time.Duration {
	wait := 30 * time.Second
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil && seconds > 0 {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil && time.Until(at) > 0 {
		wait = time.Until(at)
	}
	return wait
}

// The API answers 429: no process calls it until then, and the message waits without an attempt.
func ExampleLimiter_Pause() {
	limits, err := limit.New([]limit.Rule{
		{Name: "payments", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 10}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	post := func(context.Context, order) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}}, nil
	}
	charge := func(ctx context.Context, o order) error {
		answer, err := post(ctx, o)
		if err != nil {
			return err
		}
		if answer.StatusCode == http.StatusTooManyRequests {
			wait := retryAfter(answer.Header.Get("Retry-After"))
			refused := errors.New("payments: too many requests")
			if err := limits.Pause(ctx, "payments", "*", wait); err != nil {
				refused = fmt.Errorf("%w, and other processes don't pause: %w", refused, err)
			}
			return sqsonce.Postpone(wait, refused) // also then: this message must wait
		}
		return nil
	}
	handler := limit.Handler(limits, sqsonce.JSON(charge))
	for _, id := range []string{"1", "2"} {
		err := handler(context.Background(), &sqsonce.Message{Body: `{"ID": "` + id + `"}`, ReceiveCount: 1})
		fmt.Println(sqsonce.OutcomeOf(err).Kind)
	}
	// Output:
	// postponed
	// postponed
}
