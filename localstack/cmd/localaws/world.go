package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// world is the services of all places, which a reset replaces, and what is asked about them.
type world struct {
	o         options
	url       string
	plan      *plan.Plan // of the files and the functions' flags
	places    atomic.Pointer[places.Map]
	calls     calls
	called    atomic.Bool // since the state was saved
	ready     atomic.Bool // all resources exist
	functions *functions

	resetting sync.Mutex // while the resources and the functions are created, replaced or ended
	ended     bool
}

func newWorld(o options, url string, log io.Writer) *world {
	w := &world{o: o, url: url}
	w.functions = newFunctions(w, log)
	w.places.Store(newPlaces(o))
	return w
}

// account is the account of all access keys but those that name one.
const account = "000000000000"

func (o *options) home() places.Place { return places.Place{Region: o.region, Account: account} }

// newPlaces returns services that keep no record of calls, which would grow for weeks.
func newPlaces(o options) *places.Map {
	return places.New(o.home(), func(p places.Place) *places.Services {
		return &places.Services{
			Place: p,
			SQS: memsqs.New(func(m *memsqs.Options) {
				m.Region, m.Account, m.OfRequest, m.NoRecord = p.Region, p.Account, true, true
				m.StrictHandles, m.NoPurgeDelay = o.strictHandles, o.noPurgeDelay
				m.Seed = rand.Uint64() // message IDs are not those of another run: stores remember them
			}),
			DynamoDB: memdynamodb.New(func(d *memdynamodb.Options) { d.Region, d.Account, d.NoRecord = p.Region, p.Account, true }),
		}
	})
}

func (w *world) close() { w.places.Load().Close() }

// homePath is the endpoint of the services in -region, whatever the environment's Region and access key are.
const homePath = "/_localaws/home/"

func (w *world) home() *places.Services { return w.places.Load().At(w.o.home()) }

// begin creates the first resources and functions.
func (w *world) begin(ctx context.Context) error {
	w.resetting.Lock()
	defer w.resetting.Unlock()
	err := w.create(ctx)
	w.ready.Store(err == nil)
	return err
}

var errEnded = errors.New("localaws ends")

// recreate replaces everything. It is not ready until all resources exist again.
func (w *world) recreate(ctx context.Context) error {
	w.resetting.Lock()
	defer w.resetting.Unlock()
	if w.ended {
		return errEnded // functions would outlive localaws
	}
	w.ready.Store(false)
	w.functions.stop()
	w.places.Swap(newPlaces(w.o)).Close()
	err := w.create(ctx)
	w.ready.Store(err == nil)
	return err
}

// end stops the functions, whose calls need the server, for good.
func (w *world) end() {
	w.resetting.Lock()
	defer w.resetting.Unlock()
	w.ended = true
	w.functions.stop()
}

// create creates the queues and tables of the flags and the files, and starts the functions. The resources exist as long as the services,
// so it does not close the stack.
func (w *world) create(ctx context.Context) error {
	_, err := localstack.Start(ctx, func(o *localstack.Options) {
		o.Endpoint = w.url + homePath
		o.Tables = w.o.tables
		for _, name := range w.o.queues {
			o.Queues = append(o.Queues, localstack.Queue{Name: name})
		}
	})
	if err != nil {
		return err
	}
	if err := w.plan.Create(ctx, w.sqsClient(), w.dynamoClient(), w.functions.log); err != nil {
		return err
	}
	return w.functions.start(ctx)
}

// handler serves the world's own paths, and the services on all others.
func (w *world) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", w.page)
	mux.HandleFunc("GET /_localaws/health", w.health)
	mux.HandleFunc("GET /_localstack/health", w.health)
	mux.HandleFunc("GET /_localaws/queues/{name}/messages", w.messages)
	mux.HandleFunc("GET /_localaws/tables/{name}/items", w.items)
	mux.HandleFunc("POST /_localaws/reset", w.reset)
	mux.HandleFunc("POST "+homePath, func(rw http.ResponseWriter, r *http.Request) {
		s := w.home()
		localstack.Handler(s.SQS, s.DynamoDB).ServeHTTP(rw, r)
	})
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		http.Error(rw, fmt.Sprintf("localaws has no %s %s: see %s/ and %s/_localaws/health. AWS's calls are POST requests.", r.Method, r.URL.Path, w.url, w.url), http.StatusNotFound)
	})
	lambda := w.functions.handler()
	return gzipped(crossOrigin(w.o.cors, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case refused(rw, r):
			return
		case isLambda(r) && !allowed(r, w.o.cors): // a browser asks no leave for an invocation
			writeLambdaError(rw, &lambdaError{http.StatusForbidden, "AccessDeniedException", "a page of another origin may not call functions: see -cors"})
			return
		case isLambda(r):
			lambda.ServeHTTP(rw, r)
			return
		case isOwn(r):
			mux.ServeHTTP(rw, r)
			return
		}
		w.calls.count(r, time.Now())
		defer w.called.Store(true)
		w.places.Load().ServeHTTP(rw, r)
	})))
}

// place returns the services of the parameters region and account, by default those of the flags. After false it has answered.
func (w *world) place(rw http.ResponseWriter, r *http.Request) (*places.Services, bool) {
	p := places.Place{Region: cmp.Or(r.FormValue("region"), w.o.region), Account: cmp.Or(r.FormValue("account"), account)}
	s := w.places.Load().At(p)
	if s == nil {
		http.Error(rw, "there is nothing in "+p.String(), http.StatusNotFound)
	}
	return s, s != nil
}

// message is a message as the look shows it.
type message struct {
	memsqs.QueuedMessage
	State string // visible, delayed or in flight
}

func (w *world) messages(rw http.ResponseWriter, r *http.Request) {
	s, ok := w.place(rw, r)
	if !ok {
		return
	}
	name := r.PathValue("name")
	queued := s.SQS.Messages(name)
	if queued == nil {
		http.Error(rw, "there is no queue "+name, http.StatusNotFound)
		return
	}
	all := make([]message, 0, len(queued))
	for _, m := range queued {
		state := "visible"
		switch {
		case m.InFlight:
			state = "in flight"
		case m.VisibleAt.After(time.Now()):
			state = "delayed"
		}
		all = append(all, message{m, state})
	}
	writeJSON(rw, all)
}

func (w *world) items(rw http.ResponseWriter, r *http.Request) {
	s, ok := w.place(rw, r)
	if !ok {
		return
	}
	name := r.PathValue("name")
	all := s.DynamoDB.Items(name)
	if all == nil {
		http.Error(rw, "there is no table "+name, http.StatusNotFound)
		return
	}
	writeJSON(rw, all)
}

// reset empties a queue, a table, or everything. Its answer comes when the queues and tables of the flags exist again.
func (w *world) reset(rw http.ResponseWriter, r *http.Request) {
	if !allowed(r, w.o.cors) {
		http.Error(rw, "a page of another origin may not reset localaws: see -cors", http.StatusForbidden)
		return
	}
	s, ok := w.place(rw, r)
	if !ok {
		return
	}
	defer w.called.Store(true)
	queue, table := r.FormValue("queue"), r.FormValue("table")
	var err error
	switch {
	case queue != "" && !s.SQS.Purge(queue):
		http.Error(rw, "there is no queue "+queue, http.StatusNotFound)
		return
	case queue != "":
	case table != "":
		err = emptyTable(r.Context(), s, table)
	default:
		err = w.recreate(context.WithoutCancel(r.Context())) // to its end, even if the client disconnects
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}

// emptyTable deletes the items that a table has now.
func emptyTable(ctx context.Context, s *places.Services, name string) error {
	c := dynamoClient(s)
	out, err := c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return err
	}
	for pages := dynamodb.NewScanPaginator(c, &dynamodb.ScanInput{TableName: &name}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			key := map[string]types.AttributeValue{}
			for _, k := range out.Table.KeySchema {
				key[*k.AttributeName] = item[*k.AttributeName]
			}
			if _, err := c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &name, Key: key}); err != nil {
				return err
			}
		}
	}
	return nil
}

func local(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
}

// dynamoClient is a client without a network.
func dynamoClient(s *places.Services) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: s.Region, Credentials: aws.CredentialsProviderFunc(local), HTTPClient: &http.Client{Transport: s.DynamoDB},
		BaseEndpoint: aws.String("http://dynamodb.memory"),
	})
}

func writeJSON(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v) // the client disconnected
}
