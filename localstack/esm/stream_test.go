package esm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// Where a test names no other page, its rule is of
// https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html and https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html

// streamFixture is a table in memory, whose stream has a mapping, inside a bubble.
type streamFixture struct {
	*testing.T
	srv    *memdynamodb.Server
	db     *dynamodb.Client
	client *dynamodbstreams.Client
	arn    string
	log    testlog.Book
	stop   func() error

	mu      sync.Mutex
	batches []string // by invocation: the ids of its records and what their items have, "a1 b1"
	at      []time.Duration
	began   time.Time
	running int
	most    int
	dropped []string
	mayDrop bool // else the end of the test wants that nothing was
}

func dynamoClients(srv http.RoundTripper) (*dynamodb.Client, *dynamodbstreams.Client) {
	return testaws.DynamoDB(srv), testaws.Streams(srv)
}

func onStream(t *testing.T, f func(x *streamFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := memdynamodb.New()
		defer srv.Close()
		x := &streamFixture{T: t, srv: srv, began: time.Now()}
		x.db, x.client = dynamoClients(srv)
		out := must.Get(x.db.CreateTable(x.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("orders"), BillingMode: ddbtypes.BillingModePayPerRequest,
			AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}},
			KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}},
			StreamSpecification:  &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: "NEW_AND_OLD_IMAGES"},
		}))(x)
		x.arn = *out.TableDescription.LatestStreamArn
		f(x)
		if x.stop != nil {
			x.mustStop()
		}
		if !x.mayDrop {
			x.wantDropped()
		}
	})
}

// put writes items: "a1" is the item "a" with n = 1.
func (x *streamFixture) put(items ...string) {
	x.Helper()
	for _, i := range items {
		x.putItem(map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: i[:1]}, "n": &ddbtypes.AttributeValueMemberN{Value: i[1:]}})
	}
}

func (x *streamFixture) putItem(item map[string]ddbtypes.AttributeValue) {
	x.Helper()
	must.Get(x.db.PutItem(x.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item}))(x)
}

func nameOf(r events.DynamoDBEventRecord) string {
	if n, ok := r.Change.NewImage["n"]; ok {
		return r.Change.Keys["id"].String() + n.Number()
	}
	return r.Change.Keys["id"].String()
}

func namesOf(e events.DynamoDBEvent) string {
	var names []string
	for _, r := range e.Records {
		names = append(names, nameOf(r))
	}
	return strings.Join(names, " ")
}

// run starts a mapping whose function is f. It ends with the test, or when the test calls x.stop.
func (x *streamFixture) run(cfg esm.StreamConfig, f func(ctx context.Context, e events.DynamoDBEvent) (any, error)) {
	x.Helper()
	cfg.StreamARN = x.arn
	cfg.Logger = slog.New(slog.NewTextHandler(&x.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if cfg.OnDropped == nil {
		cfg.OnDropped = func(records []string, why string) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.dropped = append(x.dropped, fmt.Sprintf("%d %s", len(records), why))
		}
	}
	ctx, cancel := context.WithCancel(x.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- esm.RunStream(ctx, x.client, cfg, func(ctx context.Context, event []byte) ([]byte, error) { return x.invoke(ctx, event, f) })
	}()
	x.stop = func() error {
		x.stop = nil
		cancel()
		return <-ended
	}
	x.Cleanup(func() { cancel() })
}

func (x *streamFixture) invoke(ctx context.Context, event []byte, f func(ctx context.Context, e events.DynamoDBEvent) (any, error)) ([]byte, error) {
	var e events.DynamoDBEvent
	if err := json.Unmarshal(event, &e); err != nil {
		x.Errorf("event %s: %v", event, err)
	}
	x.mu.Lock()
	x.batches, x.at = append(x.batches, namesOf(e)), append(x.at, time.Since(x.began))
	x.running++
	x.most = max(x.most, x.running)
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		x.running--
		x.mu.Unlock()
	}()
	response, err := f(ctx, e)
	if err != nil {
		return nil, err
	}
	return json.Marshal(response)
}

func (x *streamFixture) mustStop() {
	x.Helper()
	must.Do(x, x.stop())
}

func (x *streamFixture) wantStopTakes(want time.Duration) {
	x.Helper()
	began := time.Now()
	x.mustStop()
	if took := time.Since(began); took != want {
		x.Errorf("the stop took %s, want %s", took, want)
	}
}

func (x *streamFixture) wantBatches(want ...string) {
	x.Helper()
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if d := cmp.Diff(want, x.batches); d != "" {
		x.Errorf("batches (-want +got):\n%s", d)
	}
}

func (x *streamFixture) wantDropped(want ...string) {
	x.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mayDrop = true
	if d := cmp.Diff(want, x.dropped); d != "" {
		x.Errorf("dropped (-want +got):\n%s", d)
	}
	for _, w := range want {
		_, why, _ := strings.Cut(w, " ")
		if !strings.Contains(x.log.String(), "records dropped") || !strings.Contains(x.log.String(), why) {
			x.Errorf("the log has no line of %q", why)
		}
	}
}

func succeed(context.Context, events.DynamoDBEvent) (any, error) { return nil, nil }

var errFunction = errors.New("function failed")

// fails returns a function that fails the batches that have one of the records.
func fails(names ...string) func(context.Context, events.DynamoDBEvent) (any, error) {
	return func(_ context.Context, e events.DynamoDBEvent) (any, error) {
		if slices.ContainsFunc(e.Records, func(r events.DynamoDBEventRecord) bool { return slices.Contains(names, nameOf(r)) }) {
			return nil, errFunction
		}
		return nil, nil
	}
}

// Settings that Lambda refuses are errors before any call, all of them in one error.
func TestStreamConfig(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/2026-01-01T00:00:00.000"
	tests := []struct {
		name string
		cfg  esm.StreamConfig
		want []string
	}{
		{"no stream", esm.StreamConfig{}, []string{"StreamARN"}},
		{"a table", esm.StreamConfig{StreamARN: "arn:aws:dynamodb:us-east-1:000000000000:table/orders"}, []string{"StreamARN"}},
		{"a queue", esm.StreamConfig{StreamARN: "arn:aws:sqs:us-east-1:000000000000:/stream/"}, []string{"StreamARN"}},
		{"batch of -1", esm.StreamConfig{StreamARN: arn, BatchSize: -1}, []string{"BatchSize"}},
		{"batch of 10,001", esm.StreamConfig{StreamARN: arn, BatchSize: 10_001}, []string{"BatchSize"}},
		{"window of 301 s", esm.StreamConfig{StreamARN: arn, BatchingWindow: 301 * time.Second}, []string{"BatchingWindow"}},
		{"window of 1.5 s", esm.StreamConfig{StreamARN: arn, BatchingWindow: 1500 * time.Millisecond}, []string{"BatchingWindow"}},
		{"window of -1 s", esm.StreamConfig{StreamARN: arn, BatchingWindow: -time.Second}, []string{"BatchingWindow"}},
		{"factor of 11", esm.StreamConfig{StreamARN: arn, ParallelizationFactor: 11}, []string{"ParallelizationFactor"}},
		{"factor of -1", esm.StreamConfig{StreamARN: arn, ParallelizationFactor: -1}, []string{"ParallelizationFactor"}},
		{"10,001 retries", esm.StreamConfig{StreamARN: arn, MaximumRetryAttempts: 10_001}, []string{"MaximumRetryAttempts"}},
		{"age of 59 s", esm.StreamConfig{StreamARN: arn, MaximumRecordAge: 59 * time.Second}, []string{"MaximumRecordAge"}},
		{"age of a week and a second", esm.StreamConfig{StreamARN: arn, MaximumRecordAge: 7*24*time.Hour + time.Second}, []string{"MaximumRecordAge"}},
		{"age of 60.5 s", esm.StreamConfig{StreamARN: arn, MaximumRecordAge: 60500 * time.Millisecond}, []string{"MaximumRecordAge"}},
		{"timeout of 5,401 s", esm.StreamConfig{StreamARN: arn, FunctionTimeout: 5401 * time.Second}, []string{"FunctionTimeout"}},
		{"timeout of -1 s", esm.StreamConfig{StreamARN: arn, FunctionTimeout: -1}, []string{"FunctionTimeout"}},
		{"eleven filters", esm.StreamConfig{StreamARN: arn, Filters: slices.Repeat([]string{"{}"}, 11)}, []string{"Filters"}},
		{"bad filters", esm.StreamConfig{StreamARN: arn, Filters: []string{`{}`, `{`, `null`, `{"body":["x"]}`, `{"eventName":"INSERT"}`}}, []string{"Filters[1]", "Filters[2]", "Filters[3]", "Filters[4]"}},
		{"several", esm.StreamConfig{BatchSize: -1, MaximumRecordAge: 1, Filters: []string{`x`}}, []string{"StreamARN", "BatchSize", "MaximumRecordAge", "Filters[0]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := esm.RunStream(t.Context(), noStream, tt.cfg, nil)
			if d := cmp.Diff(tt.want, fields(err)); d != "" {
				t.Errorf("bad fields (-want +got):\n%s\n%v", d, err)
			}
			if !strings.HasPrefix(err.Error(), "esm: StreamConfig.") {
				t.Errorf("error %q", err)
			}
		})
	}
	for _, cfg := range []esm.StreamConfig{
		{StreamARN: arn, BatchSize: 10_000, BatchingWindow: 300 * time.Second, ParallelizationFactor: 10, MaximumRetryAttempts: 10_000, MaximumRecordAge: 7 * 24 * time.Hour, FunctionTimeout: 90 * time.Minute},
		{StreamARN: arn, BatchSize: 1, MaximumRetryAttempts: -1, MaximumRecordAge: time.Minute, FunctionTimeout: 1},
	} {
		if err := esm.RunStream(t.Context(), noStream, cfg, nil); !errors.Is(err, errFunction) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// noStream is a client of a stream that cannot be described.
var noStream = testaws.Streams(noNetwork{}, func(o *dynamodbstreams.Options) { o.Retryer = aws.NopRetryer{} })

type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) { return nil, errFunction }

// A batch is what a read returns, at most BatchSize. "If the batch that Lambda reads from the event source has only one record in
// it, Lambda sends only one record to the function."
func TestStreamBatches(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1", "c1", "d1", "e1")
		x.run(esm.StreamConfig{BatchSize: 2}, succeed)
		x.wantBatches("a1 b1", "c1 d1", "e1")
		time.Sleep(time.Minute)
		x.put("a2")
		time.Sleep(250 * time.Millisecond) // "at a base rate of 4 times per second"
		x.wantBatches("a1 b1", "c1 d1", "e1", "a2")
	})
}

// A stream whose first record is older than a page is read from its oldest record. Default: 100 records.
func TestStreamDefaultBatch(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		for i := range 250 {
			x.put(fmt.Sprint("a", i))
		}
		x.run(esm.StreamConfig{}, succeed)
		synctest.Wait()
		var sizes []int
		for _, b := range x.batches {
			sizes = append(sizes, len(strings.Fields(b)))
		}
		if want := []int{100, 100, 50}; !slices.Equal(sizes, want) {
			x.Errorf("batches of %v records, want %v", sizes, want)
		}
	})
}

// "Lambda invokes when the batch size is met or the window has passed"; "the next window begins as soon as the previous function
// invocation completes". https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventsourcemapping.html#invocation-eventsourcemapping-batching
func TestStreamWindow(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1")
		x.run(esm.StreamConfig{BatchSize: 4, BatchingWindow: 10 * time.Second}, succeed)
		time.Sleep(3 * time.Second)
		x.put("a2")
		time.Sleep(7*time.Second - time.Nanosecond)
		x.wantBatches()
		time.Sleep(time.Nanosecond)
		x.wantBatches("a1 a2")
		x.put("a3", "a4", "a5", "a6", "a7")
		time.Sleep(time.Second) // full
		x.wantBatches("a1 a2", "a3 a4 a5 a6")
		time.Sleep(10 * time.Second)
		x.wantBatches("a1 a2", "a3 a4 a5 a6", "a7")
	})
}

// A batch is at most 6 MB. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
func TestStreamPayload(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		for i := range 20 {
			x.putItem(map[string]ddbtypes.AttributeValue{
				"id": &ddbtypes.AttributeValueMemberS{Value: string(rune('a' + i))}, "v": &ddbtypes.AttributeValueMemberS{Value: strings.Repeat("v", 390<<10)},
			})
		}
		largest := 0
		x.run(esm.StreamConfig{BatchSize: 100, BatchingWindow: 10 * time.Second}, func(_ context.Context, e events.DynamoDBEvent) (any, error) {
			raw, err := json.Marshal(e)
			largest = max(largest, len(raw))
			return nil, err
		})
		time.Sleep(time.Minute)
		x.wantBatches("a b c d e f g h i j k l m n o", "p q r s t")
		if largest > 6<<20+2<<10 { // the event as aws-lambda-go writes it is a little longer
			x.Errorf("an event of %d bytes", largest)
		}
	})
}

// "If your function returns an error, Lambda retries the batch until processing succeeds or the data expires." What comes later
// waits, so that the order stays.
func TestStreamRetries(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1")
		calls := 0
		x.run(esm.StreamConfig{}, func(context.Context, events.DynamoDBEvent) (any, error) {
			if calls++; calls <= 10 {
				return nil, errFunction
			}
			return nil, nil
		})
		time.Sleep(time.Second)
		x.put("c1")
		time.Sleep(3 * time.Minute)
		x.wantBatches(append(slices.Repeat([]string{"a1 b1"}, 11), "c1")...)
		// 0.5 s, doubled up to 30 s: five of 0.5 to 16 s make 31.5 s, and four of 30 s follow.
		if last := x.at[10]; last != 31500*time.Millisecond+4*30*time.Second {
			x.Errorf("the last invocation came after %s", last)
		}
	})
}

// MaximumRetryAttempts is "the maximum number of times to retry when the function returns an error"; the batch is then discarded.
func TestStreamRetryAttempts(t *testing.T) {
	for attempts, want := range map[int]int{-1: 1, 1: 2, 3: 4} {
		onStream(t, func(x *streamFixture) {
			x.put("a1", "b1")
			x.run(esm.StreamConfig{MaximumRetryAttempts: attempts}, fails("a1"))
			synctest.Wait()
			x.put("c1")
			time.Sleep(10 * time.Second)
			x.wantBatches(append(slices.Repeat([]string{"a1 b1"}, want), "c1")...)
			x.wantDropped(fmt.Sprintf("2 invoked %d times", want))
		})
	}
}

// MaximumRecordAge is "the maximum age of a record that Lambda sends to a function for processing".
func TestStreamRecordAge(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1")
		time.Sleep(time.Hour)
		x.put("b1", "c1")
		x.run(esm.StreamConfig{MaximumRecordAge: 10 * time.Minute}, fails("b1"))
		time.Sleep(5 * time.Minute)
		x.wantDropped("1 older than 10m0s")
		x.put("d1")
		time.Sleep(6 * time.Minute)
		x.wantDropped("1 older than 10m0s", "2 older than 10m0s")
		x.mu.Lock()
		first, last := x.batches[0], x.batches[len(x.batches)-1]
		x.mu.Unlock()
		if first != "b1 c1" || last != "d1" {
			x.Errorf("the first batch is %s, the last is %s", first, last)
		}
	})
}

// BisectBatchOnFunctionError isolates the record that fails, and "splitting a batch does not count towards the retry quota".
// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
func TestStreamBisect(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1", "c1", "d1", "e1")
		x.run(esm.StreamConfig{BisectOnError: true, MaximumRetryAttempts: 1}, fails("c1"))
		time.Sleep(time.Minute)
		x.wantBatches("a1 b1 c1 d1 e1", "a1 b1", "c1 d1 e1", "c1", "c1", "d1 e1")
		x.wantDropped("1 invoked 2 times")
	})
}

// Success, failure and the checkpoint; TestResponse has the table of responses that are no list of failures.
// https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
func TestStreamResponses(t *testing.T) {
	const whole = "a1 b1 c1"
	const report = `{"batchItemFailures":[{"itemIdentifier":"SEQ1"}]}`
	for _, tt := range []struct {
		response string
		off      bool // ReportBatchItemFailures
		want     []string
		log      string
	}{
		{`{}`, false, []string{whole}, ""},
		{`{"batchItemFailures":7}`, false, []string{whole, whole}, "invalid response"},
		{`{"batchItemFailures":[{"itemIdentifier":"unknown"}]}`, false, []string{whole, whole}, "invalid response"},
		{report, false, []string{whole, "b1 c1"}, ""},
		{`{"batchItemFailures":[{"itemIdentifier":"SEQ2"},{"itemIdentifier":"SEQ1"}]}`, false, []string{whole, "b1 c1"}, ""}, // the lowest, in any order
		// "Even when your function code returns partial batch failure responses, these responses will not be processed by Lambda unless
		// the ReportBatchItemFailures feature is explicitly turned on": what was reported is lost.
		{report, true, []string{whole}, "ReportBatchItemFailures is off"},
		{`{"BatchItemFailures":[]}`, false, []string{whole}, "response has no batchItemFailures"}, // succeeds, as on AWS
	} {
		onStream(t, func(x *streamFixture) {
			x.put("a1", "b1", "c1")
			calls := 0
			x.run(esm.StreamConfig{ReportBatchItemFailures: !tt.off}, func(_ context.Context, e events.DynamoDBEvent) (any, error) {
				if calls++; calls > 1 {
					return nil, nil
				}
				out := tt.response
				for i, r := range e.Records {
					out = strings.ReplaceAll(out, fmt.Sprint("SEQ", i), r.Change.SequenceNumber)
				}
				return json.RawMessage(out), nil
			})
			time.Sleep(5 * time.Second)
			x.wantBatches(tt.want...)
			x.mustStop()
			if !strings.Contains(x.log.String(), tt.log) {
				x.Errorf("%s: the log has no %q", tt.response, tt.log)
			}
		})
	}
}

func reports(names ...string) func(context.Context, events.DynamoDBEvent) (any, error) {
	return func(_ context.Context, e events.DynamoDBEvent) (any, error) {
		out := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
		for _, r := range e.Records {
			if slices.Contains(names, nameOf(r)) {
				out.BatchItemFailures = append(out.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: r.Change.SequenceNumber})
			}
		}
		return out, nil
	}
}

// With both, "the batch is bisected at the returned sequence number, and Lambda retries only the remaining records". Each is a
// retry; after the last the rest is dropped.
func TestStreamReportAndBisect(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1", "c1", "d1")
		x.run(esm.StreamConfig{ReportBatchItemFailures: true, BisectOnError: true, MaximumRetryAttempts: 2}, reports("b1", "d1"))
		time.Sleep(time.Minute)
		x.wantBatches("a1 b1 c1 d1", "b1 c1 d1", "b1 c1 d1")
		x.wantDropped("3 invoked 3 times")
	})
	// "If your invocation fails and BisectBatchOnFunctionError is turned on, the batch is bisected regardless of your
	// ReportBatchItemFailures setting."
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1")
		x.run(esm.StreamConfig{ReportBatchItemFailures: true, BisectOnError: true, MaximumRetryAttempts: -1}, fails("b1"))
		time.Sleep(time.Minute)
		x.wantBatches("a1 b1", "a1", "b1")
		x.wantDropped("1 invoked 1 times")
	})
}

// A function that is throttled is invoked "until the records expire or exceed the maximum age": it is no retry.
// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
func TestStreamThrottled(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1")
		x.run(esm.StreamConfig{BisectOnError: true, MaximumRetryAttempts: -1}, func(context.Context, events.DynamoDBEvent) (any, error) {
			if time.Since(x.began) < 10*time.Minute {
				return nil, esm.ErrThrottled
			}
			return nil, nil
		})
		time.Sleep(11 * time.Minute)
		x.mustStop()
		if last := x.at[len(x.at)-1]; last < 10*time.Minute || last > 10*time.Minute+30*time.Second {
			x.Errorf("the last invocation came after %s", last)
		}
	})
}

// Filters are for the whole record, numbers in it are strings, and what matches none is passed over.
// https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
func TestStreamFilters(t *testing.T) {
	for _, tt := range []struct {
		filters []string
		want    []string
	}{
		{nil, []string{"a1 b2 a3 c"}},
		{[]string{`{}`}, []string{"a1 b2 a3 c"}},
		{[]string{`{"eventName":["INSERT"]}`}, []string{"a1 b2 c"}},
		{[]string{`{"eventName":["MODIFY"]}`, `{"dynamodb":{"Keys":{"id":{"S":[{"prefix":"b"}]}}}}`}, []string{"b2 a3"}},
		{[]string{`{"dynamodb":{"NewImage":{"n":{"N":["3"]}}}}`}, []string{"a3"}},
		{[]string{`{"dynamodb":{"NewImage":{"n":{"N":[3]}}}}`}, nil},
		{[]string{`{"dynamodb":{"NewImage":{"n":{"N":[{"exists":false}]}}}}`}, []string{"c"}},
		{[]string{`{"userIdentity":{"type":["Service"]}}`}, nil},
	} {
		onStream(t, func(x *streamFixture) {
			x.put("a1", "b2", "a3")
			x.putItem(map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "c"}})
			x.run(esm.StreamConfig{Filters: tt.filters}, succeed)
			time.Sleep(time.Second)
			x.wantBatches(tt.want...)
		})
	}
}

// "Lambda processes up to 10 batches in each shard concurrently" and "still ensures in-order processing at the item level".
func TestStreamParallelizationFactor(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		ids := "abcdefghijklmnopqrstuvwxyz"
		for round := range 5 {
			for _, id := range ids {
				x.put(string(id) + fmt.Sprint(round))
			}
		}
		last, running := map[string]string{}, map[string]bool{}
		var mu sync.Mutex
		x.run(esm.StreamConfig{ParallelizationFactor: 4, BatchSize: 3}, func(_ context.Context, e events.DynamoDBEvent) (any, error) {
			mu.Lock()
			for _, r := range e.Records {
				id, now := nameOf(r)[:1], nameOf(r)[1:]
				if running[id] && !slices.ContainsFunc(e.Records, func(o events.DynamoDBEventRecord) bool { return nameOf(o)[:1] == id && nameOf(o) < nameOf(r) }) {
					x.Errorf("item %s is in two invocations at once", id)
				}
				if now <= last[id] && last[id] != "" {
					x.Errorf("item %s: %s after %s", id, now, last[id])
				}
				last[id], running[id] = now, true
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			for _, r := range e.Records {
				running[nameOf(r)[:1]] = false
			}
			return nil, nil
		})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for _, id := range ids {
			if last[string(id)] != "4" {
				x.Errorf("item %c ended at %q", id, last[string(id)])
			}
		}
		x.mu.Lock()
		if x.most != 4 {
			x.Errorf("%d invocations at once, want 4", x.most)
		}
		x.mu.Unlock()
	})
}

// TestStreamEventGolden: the event is as Lambda's, with every type of attribute.
func TestStreamEventGolden(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.putItem(everyAttribute)
		must.Get(x.db.UpdateTimeToLive(x.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("orders"), TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String("n"), Enabled: aws.Bool(true)}}))(x)
		x.put(fmt.Sprint("t", time.Now().Add(-time.Hour).Unix()))
		x.srv.SweepTTL()
		var got []byte
		x.run(esm.StreamConfig{}, func(_ context.Context, e events.DynamoDBEvent) (any, error) {
			first := e.Records[0].Change.NewImage
			if b := first["b"].Binary(); string(b) != "\x00\xff<" {
				x.Errorf("bytes %q", b)
			}
			if l := first["l"].List(); l[1].Map()["deep"].Number() != "-1.5" || !l[2].IsNull() || !l[3].Boolean() {
				x.Errorf("list %v", l)
			}
			if id := e.Records[2].UserIdentity; id == nil || id.Type != "Service" || id.PrincipalID != "dynamodb.amazonaws.com" {
				x.Errorf("identity %v", id)
			}
			return nil, nil
		})
		synctest.Wait()
		x.mustStop()
		ctx, cancel := context.WithCancel(x.Context())
		if err := esm.RunStream(ctx, x.client, esm.StreamConfig{StreamARN: x.arn}, func(_ context.Context, event []byte) ([]byte, error) {
			got = event
			cancel()
			return nil, nil
		}); err != nil {
			x.Error(err)
		}
		golden(x.T, "testdata/stream_event.json", got)
	})
}

var everyAttribute = map[string]ddbtypes.AttributeValue{
	"id": &ddbtypes.AttributeValueMemberS{Value: "a"}, "s": &ddbtypes.AttributeValueMemberS{Value: "é<&>\"\n"},
	"b": &ddbtypes.AttributeValueMemberB{Value: []byte("\x00\xff<")}, "e": &ddbtypes.AttributeValueMemberB{Value: []byte{}},
	"ss": &ddbtypes.AttributeValueMemberSS{Value: []string{"x", "y"}}, "ns": &ddbtypes.AttributeValueMemberNS{Value: []string{"1", "2.5"}}, "bs": &ddbtypes.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
	"l": &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{
		&ddbtypes.AttributeValueMemberS{Value: ""}, &ddbtypes.AttributeValueMemberM{Value: map[string]ddbtypes.AttributeValue{"deep": &ddbtypes.AttributeValueMemberN{Value: "-1.5"}}},
		&ddbtypes.AttributeValueMemberNULL{Value: true}, &ddbtypes.AttributeValueMemberBOOL{Value: true}, &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{}},
	}},
	"m": &ddbtypes.AttributeValueMemberM{Value: map[string]ddbtypes.AttributeValue{}},
}
