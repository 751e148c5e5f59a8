package cli

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
)

var update = flag.Bool("update", false, "write the golden files")

// world is AWS in memory with a queue "orders", its dead-letter queue and a table "dedup".
type world struct {
	*testing.T
	stack  *localstack.Stack
	store  *dynamostore.Store
	opts   Options
	calls  *calls
	folder string // $XDG_STATE_HOME

	// Of the next commands.
	caller   func(context.Context) (string, error)
	terminal bool
	bars     bool
	width    int
	answer   string
	env      map[string]string

	workers map[string]func() statusreport.Report // by host, for top
	handler http.Handler                          // of a worker at any other host
	ages    map[string]float64                    // by queue, in seconds; nil: CloudWatch is not allowed
	noisy   map[string]float64                    // CloudWatch's noisy groups by queue
	quiet   map[string]float64                    // the age of the oldest message in the other groups, in seconds
	noURLs  bool                                  // their handlers have no Options.Identifiers
	asked   int                                   // how often CloudWatch was
	noAWS   error                                 // why there is no connection
	size    func() (int, int)

	deployed *deployment  // for doctor
	lambda   *functionAPI // for commands about functions
}

func bubble(t *testing.T, f func(w *world)) {
	t.Helper()
	clearEnvironment(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false)
		f(w)
	})
}

func run(t *testing.T, name string, f func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, f) })
}

// clearEnvironment takes away what would lead to AWS itself, or to an emulator.
func clearEnvironment(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
}

func newWorld(t *testing.T, http bool) *world {
	t.Helper()
	stack := testworld.Start(t, func(o *localstack.Options) {
		o.Queues, o.HTTP = []localstack.Queue{{Name: "orders"}, {Name: "orders.fifo"}}, http
	})
	store := testworld.Store(t, stack)
	return &world{T: t, stack: stack, store: store, env: map[string]string{"USER": "ann"}, folder: t.TempDir(), calls: &calls{}, caller: func(context.Context) (string, error) { return callerARN, nil }}
}

// result is what a command printed, and its exit code.
type result struct {
	code     exitCode
	out, err string
}

// run runs a command. The flags of the world's queue, table and consumer come from the environment.
func (w *world) run(args ...string) result { return w.runIn(context.Background(), args...) }

func (w *world) runIn(ctx context.Context, args ...string) result {
	var out, err bytes.Buffer
	w.calls.begin(args)
	a := w.app(w.answer)
	a.out, a.err, a.asks, a.width, a.bars, a.size, a.http = &out, &err, w.terminal, w.width, w.bars, w.size, &http.Client{Transport: workersOf{w}}
	code := a.run(ctx, args)
	return result{code, out.String(), err.String()}
}

const callerARN = "arn:aws:sts::000000000000:assumed-role/operators/ann"

func (w *world) connect(context.Context) (*services, error) {
	if w.noAWS != nil {
		return nil, w.noAWS
	}
	s := &services{
		region: "us-east-1", caller: w.caller, cloudwatch: w.cloudWatch(),
		sqs:    sqs.New(w.stack.SQS.Options(), func(o *sqs.Options) { o.HTTPClient = recorder{w.calls, o.HTTPClient} }),
		dynamo: dynamodb.New(w.stack.DynamoDB.Options(), func(o *dynamodb.Options) { o.HTTPClient = recorder{w.calls, o.HTTPClient} }),
	}
	if w.deployed != nil {
		w.deployed.into(s)
	}
	if w.lambda != nil {
		w.lambda.into(s)
	}
	return s, nil
}

const (
	consumer = "billing"
	lease    = 30 * time.Second
)

// put makes the record of an event in a state.
func (w *world) put(event string, state dedup.RecordState) string {
	w.Helper()
	ctx, key := context.Background(), consumer+"#orders|"+event
	claim := dedup.Claim{Key: key, Owner: "owner-" + event, Lease: lease, Retention: 29 * 24 * time.Hour, ReceiveCount: 3, NoTakeover: true}
	switch state {
	case ops.StateUnknown:
		return key
	case dedup.StateRunning:
		claim.Lease = 30 * time.Minute
	case dedup.StateForeign:
		w.putForeign(key)
		return key
	}
	l := must.Get(granted.Lease(w.store.Acquire(ctx, claim)))(w)
	switch state {
	case dedup.StateReleased:
		must.Do(w, w.store.Release(ctx, l, errFor(event)))
	case dedup.StateCompleted:
		must.Do(w, w.store.Complete(ctx, l, dedup.Result{Data: []byte(`{"charge":"ch_1"}`)}))
	case dedup.StateCrashed:
		time.Sleep(lease + 10*time.Second)
	}
	return key
}

// putForeign puts the record of another library, which has no owner.
func (w *world) putForeign(key string) {
	w.Helper()
	must.Get(w.stack.DynamoDB.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("dedup"), Item: map[string]ddbtypes.AttributeValue{
		"id":         &ddbtypes.AttributeValueMemberS{Value: key},
		"status":     &ddbtypes.AttributeValueMemberS{Value: "COMPLETED"},
		"expiration": &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)},
	}}))(w)
}

type errFor string

func (e errFor) Error() string {
	return "card provider: status 503 for order " + string(e) + "\x1b[31m\u202e"
}

// consume runs a consumer of a queue until the test ends.
func (w *world) consume(queue string, h sqsonce.Handler) *sqsworker.Worker {
	w.Helper()
	worker, _ := testworld.Consume(w, w.stack, w.store, queue, h)
	return worker
}

// state reads the state of a record.
func (w *world) state(key string) dedup.RecordState {
	w.Helper()
	r := must.Get(read(context.Background(), w.store, key))(w)
	return r.state
}

// send sends a message to a queue, of an event unless that is "", and returns its ID.
func (w *world) send(queue, event, body string, attrs ...string) string {
	w.Helper()
	if event != "" {
		attrs = append(testworld.Event(event), attrs...)
	}
	return testworld.Send(w, w.stack, queue, "g", body, attrs...)
}

var messageID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// random is what is new in each run: the ID of a redrive, the end of its journal's name, a plan's hash of message IDs.
var random = regexp.MustCompile(`("run":"|"hash":"|-[0-9]{6}-)(?:[A-Z2-7]+|[0-9a-f]{64})("|\.jsonl)`)

// golden compares what a command printed with a file.
func (w *world) golden(name string, got result) {
	w.Helper()
	file := filepath.Join("testdata", name+".txt")
	text := "-- exit " + strconv.Itoa(int(got.code)) + "\n-- stdout\n" + got.out + "-- stderr\n" + got.err
	text = strings.ReplaceAll(text, w.folder, "STATE")
	text = random.ReplaceAllString(text, "${1}RANDOM${2}")
	seen := map[string]string{}
	text = messageID.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = "00000000-0000-0000-0000-" + strings.Repeat(strconv.Itoa(len(seen)+1), 12)
		}
		return seen[id]
	})
	if *update {
		must.Do(w, os.MkdirAll("testdata", 0o755))
		must.Do(w, os.WriteFile(file, []byte(text), 0o644))
	}
	want := must.Get(os.ReadFile(file))(w)
	if string(want) != text {
		w.Errorf("%s differs (run with -update where that is meant).\ngot\n%s\nwant\n%s", file, text, want)
	}
}
