// Package interop_test runs Powertools for AWS Lambda and this store on one table with the same keys.
package interop_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

func TestMain(m *testing.M) { testserver.Main(m) }

const prefix = "billing" // Powertools' keyPrefix, our consumer

// bed is a table that both programs use.
type bed struct {
	*testing.T
	client *dynamodb.Client
	table  string
	store  *dynamostore.Store
	pt     *powertools
}

// onBoth runs a case on DynamoDB in memory, by HTTP, and on dynoxide.
func onBoth(t *testing.T, run func(*bed)) {
	t.Parallel()
	t.Run("in memory", func(t *testing.T) {
		t.Parallel()
		dir := install(t)
		srv := memdynamodb.New()
		t.Cleanup(srv.Close)
		listener := httptest.NewServer(srv)
		t.Cleanup(listener.Close)
		run(newBed(t, dir, listener.URL))
	})
	t.Run("dynoxide", func(t *testing.T) {
		t.Parallel()
		dir := install(t)
		run(newBed(t, dir, testserver.Dynoxide.Shared(t).URL))
	})
}

func newBed(t *testing.T, dir, url string) *bed {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
	b := &bed{T: t, client: client, table: fmt.Sprintf("interop-%d", time.Now().UnixNano())}
	must.Do(t, dynamostore.CreateTable(t.Context(), client, b.table))
	var err error
	if b.store, err = dynamostore.New(client, b.table); err != nil {
		t.Fatal(err)
	}
	b.pt = startPowertools(t, dir, url, b.table)
	return b
}

// command is a line to powertools.mjs, event a line from it.
type command struct {
	ID        int    `json:"id"`
	Op        string `json:"op"`
	Prefix    string `json:"prefix,omitempty"`
	Payload   any    `json:"payload,omitempty"`
	Remaining int64  `json:"remaining,omitempty"` // milliseconds
	Then      string `json:"then,omitempty"`
	Retention int64  `json:"retention,omitempty"` // seconds
	Validate  string `json:"validate,omitempty"`
}

type event struct {
	ID     int             `json:"id"`
	Event  string          `json:"event"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

type powertools struct {
	t  *testing.T
	in io.Writer

	mu    sync.Mutex
	calls map[int]chan event
}

func startPowertools(t *testing.T, dir, url, table string) *powertools {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "powertools.mjs", url, table)
	cmd.Dir = dir
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	p := &powertools{t: t, in: in, calls: map[int]chan event{}}
	read := make(chan struct{})
	go p.read(out, read)
	t.Cleanup(func() {
		_ = in.Close() // ends the script; a run that still waits ends with its process
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait() // killed: its status says nothing
	})
	return p
}

func (p *powertools) read(out io.Reader, done chan<- struct{}) {
	defer close(done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // a warning of the library's
		}
		p.mu.Lock()
		c := p.calls[e.ID]
		p.mu.Unlock()
		if c != nil {
			c <- e
		}
	}
}

func (p *powertools) send(c command) {
	p.t.Helper()
	if err := json.NewEncoder(p.in).Encode(c); err != nil {
		p.t.Fatal(err)
	}
}

// run is a call of an idempotent function.
type run struct {
	p      *powertools
	id     int
	events chan event
}

func (p *powertools) start(payload any, remaining time.Duration, then string, optFns ...func(*command)) run {
	p.t.Helper()
	p.mu.Lock()
	r := run{p: p, id: len(p.calls) + 1, events: make(chan event, 2)}
	p.calls[r.id] = r.events
	p.mu.Unlock()
	c := command{ID: r.id, Op: "run", Prefix: prefix, Payload: payload, Remaining: remaining.Milliseconds(), Then: then}
	for _, fn := range optFns {
		fn(&c)
	}
	p.send(c)
	return r
}

func (r run) next() event {
	r.p.t.Helper()
	select {
	case e := <-r.events:
		return e
	case <-time.After(2 * time.Minute):
		r.p.t.Fatal("Powertools: no answer within 2 min")
		return event{}
	}
}

// started waits until the function is called.
func (r run) started() {
	r.p.t.Helper()
	if e := r.next(); e.Event != "started" {
		r.p.t.Fatalf("Powertools: got %+v, want its function called", e)
	}
}

func (r run) finish(then string) event {
	r.p.t.Helper()
	r.p.send(command{ID: r.id, Op: "finish", Then: then})
	return r.next()
}

// refused waits for an error without a call of the function.
func (r run) refused(want string) {
	r.p.t.Helper()
	if e := r.next(); e.Error != want {
		r.p.t.Fatalf("Powertools: got %+v, want %s and no call", e, want)
	}
}

var errFailed = errors.New("the handler failed")
