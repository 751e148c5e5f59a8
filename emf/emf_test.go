package emf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/emf"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
)

var errCard = errors.New("card refused")

// function is a function with metrics, in virtual time.
type function struct {
	*testing.T
	metrics *emf.Metrics
	out     output
	invoke  func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
}

// output wants each line in one Write: what others write to standard output must not be inside of it.
type output struct {
	*testing.T
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	if !bytes.HasSuffix(p, []byte("\n")) || bytes.Count(p, []byte("\n")) != 1 {
		o.Errorf("written at once: %q, want a line", p)
	}
	return o.Buffer.Write(p)
}

func newFunction(t *testing.T, h sqsonce.Handler, optFns ...func(*emf.Options)) *function {
	t.Helper()
	f := &function{T: t, out: output{T: t}}
	m := must.Get(emf.New(append([]func(*emf.Options){func(o *emf.Options) { o.Service, o.Writer = "orders", &f.out }}, optFns...)...))(t)
	f.metrics = m
	if h == nil {
		return f // for its hooks
	}
	once := must.Get(dedup.New(memstore.New(), "billing", m.Once))(t)
	guarded := once.Handler(h)
	f.invoke = must.Get(lambda.Wrap(func(ctx context.Context, m *sqsonce.Message) error {
		if m.Body == "lost" { // as dedup ends a delivery
			time.Sleep(250 * time.Millisecond)
			return sqsonce.ErrLeaseLost
		}
		return guarded(ctx, m)
	}, m.Lambda, func(o *lambda.Options) { o.Client, o.Logger = lambda.NoClient, slog.New(slog.DiscardHandler) }))(t)
	return f
}

// record is a record of an event source mapping, sent two seconds ago.
func record(id, body string) events.SQSMessage {
	text := func(s string) events.SQSMessageAttribute {
		return events.SQSMessageAttribute{DataType: "String", StringValue: &s}
	}
	return events.SQSMessage{
		MessageId: id, Body: body, ReceiptHandle: "handle-" + id, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:orders",
		Attributes:        map[string]string{"SentTimestamp": strconv.FormatInt(time.Now().Add(-2*time.Second).UnixMilli(), 10), "ApproximateReceiveCount": "1"},
		MessageAttributes: map[string]events.SQSMessageAttribute{"event-id": text(id), "event-source": text("shop")},
	}
}

// request is the context of an invocation, as aws-lambda-go makes it.
func request(t *testing.T, id string, timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	//lint:ignore SA1029 aws-lambda-go's key is a string
	ctx = context.WithValue(ctx, "x-amzn-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: id})
}

// lines returns what was written, one object for each line, and checks it by the rules of the format.
func (f *function) lines() (lines []map[string]any) {
	f.Helper()
	for text := range strings.Lines(f.out.String()) {
		if problems := check(text); problems != nil {
			f.Errorf("%s%v", text, problems)
		}
		var line map[string]any
		must.Do(f, json.Unmarshal([]byte(text), &line))
		lines = append(lines, line)
	}
	f.out.Reset()
	return lines
}

// check returns what CloudWatch would refuse of a line.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
func check(text string) (problems []string) {
	bad := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	bad(len(text) > 1<<20 || !strings.HasSuffix(text, "}\n") || strings.Count(text, "\n") != 1, "no line of at most 1 MB")
	var root map[string]any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		return append(problems, err.Error())
	}
	seen := map[string]bool{} // Unmarshal takes the last of two members
	for d, depth := json.NewDecoder(strings.NewReader(text)), 0; ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch v := token.(type) {
		case json.Delim:
			depth += map[json.Delim]int{'{': 1, '[': 1, '}': -1, ']': -1}[v]
		case string:
			bad(depth == 1 && strings.Contains(text, `"`+v+`":`) && seen[v], "the member %s twice", v)
			seen[v] = depth == 1
		}
	}
	aws, _ := root["_aws"].(map[string]any)
	_, isNumber := aws["Timestamp"].(float64)
	bad(!isNumber || len(aws) != 2, "_aws is %v", aws)
	directives, _ := aws["CloudWatchMetrics"].([]any)
	bad(len(directives) != 1, "%d directives", len(directives))
	for _, d := range directives {
		d := d.(map[string]any)
		namespace, _ := d["Namespace"].(string)
		bad(namespace == "" || len(d) != 3, "directive %v", d)
		sets, _ := d["Dimensions"].([]any)
		bad(len(sets) == 0, "no dimension set")
		for _, set := range sets {
			names := set.([]any)
			bad(len(names) > 30, "%d dimensions", len(names))
			for _, name := range names {
				value, isText := root[name.(string)].(string)
				bad(!isText || value == "" || len(value) > 1024, "dimension %v is %q", name, value)
			}
		}
		metrics, _ := d["Metrics"].([]any)
		bad(len(metrics) == 0 || len(metrics) > 100, "%d metrics", len(metrics))
		for _, m := range metrics {
			m := m.(map[string]any)
			name, _ := m["Name"].(string)
			bad(!slices.Contains([]any{"Count", "Milliseconds"}, m["Unit"]) || len(m) != 2, "metric %v", m)
			values, isArray := root[name].([]any)
			if !isArray {
				values = []any{root[name]}
			}
			bad(isArray && (len(values) == 0 || len(values) > 100), "%s has %d values", name, len(values))
			for _, v := range values {
				n, isNumber := v.(float64)
				bad(!isNumber || math.IsNaN(n) || math.IsInf(n, 0) || n < 0, "%s is %v", name, v)
			}
		}
	}
	return problems
}

// One line has all that became of an invocation's messages.
func TestLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, func(ctx context.Context, m *sqsonce.Message) error {
			time.Sleep(250 * time.Millisecond)
			switch m.Body {
			case "fails":
				return errCard
			case "rejected":
				return sqsonce.Reject(errCard)
			case "unavailable":
				return sqsonce.Unavailable(errCard)
			case "hangs":
				time.Sleep(time.Hour)
			}
			return nil
		}, func(o *emf.Options) { o.Namespace, o.Dimensions = "shop", map[string]string{"stage": "test"} })
		early := record("5", "unavailable") // by a clock that is ahead
		early.Attributes["SentTimestamp"] = strconv.FormatInt(time.Now().Add(time.Second).UnixMilli(), 10)
		again := record("2", "fails")
		again.Attributes["ApproximateReceiveCount"] = "2"
		_, _ = f.invoke(request(t, "first", time.Minute), events.SQSEvent{Records: []events.SQSMessage{
			record("1", ""), again, record("3", "rejected"), record("4", "lost"), early, record("6", "hangs"),
		}})
		time.Sleep(2 * time.Second)
		_, _ = f.invoke(request(t, "second", time.Minute), events.SQSEvent{Records: []events.SQSMessage{record("1", "")}})
		lines := f.lines()
		if len(lines) != 2 {
			t.Fatalf("%d lines, want 2", len(lines))
		}
		first := lines[0]
		delete(first, "_aws")
		for _, name := range []string{"HandlerDuration", "TimeInQueue"} {
			slices.SortFunc(first[name].([]any), func(a, b any) int { return int(a.(float64) - b.(float64)) })
		}
		want := map[string]any{
			"level": "INFO", "message": "sqsonce: invocation", "timestamp": "2000-01-01T00:00:58.5Z", "requestId": "first",
			"traceId": "1-5759e988-bd862e3fe1be46a994272793", "cold_start": true, "service": "orders", "queue": "orders", "stage": "test",
			"Records": 6.0, "Done": 1.0, "Failed": 2.0, "Duplicates": 0.0, "Redelivered": 1.0, "LeaseLost": 1.0, "Unavailable": 1.0, "Abandoned": 1.0,
			"RemainingTime": 1500.0, "TimeInQueue": []any{0.0, 2000.0, 2000.0, 2000.0, 2000.0, 2000.0},
			"HandlerDuration": []any{250.0, 250.0, 250.0, 250.0, 250.0, 58500.0},
		}
		if diff := cmp.Diff(want, first); diff != "" {
			t.Errorf("first line (-want +got):\n%s", diff)
		}
		second := lines[1]
		if second["cold_start"] != false || second["Duplicates"] != 1.0 || second["Done"] != 1.0 || second["requestId"] != "second" || second["Takeovers"] != nil {
			t.Errorf("second line: %v", second)
		}
		time.Sleep(2 * time.Hour) // the handler that hangs returns
	})
}

// The times of more than 100 handlers are in further lines, which have nothing else to count.
func TestFurtherLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, func(context.Context, *sqsonce.Message) error { return nil })
		var e events.SQSEvent
		for i := range 250 {
			e.Records = append(e.Records, record(strconv.Itoa(i), ""))
		}
		must.Get(f.invoke(request(t, "1", time.Minute), e))(t)
		lines := f.lines()
		if len(lines) != 3 {
			t.Fatalf("%d lines, want 3", len(lines))
		}
		for i, want := range []int{100, 100, 50} {
			durations, _ := lines[i]["HandlerDuration"].([]any)
			waits, _ := lines[i]["TimeInQueue"].([]any)
			if len(durations) != want || len(waits) != want || (lines[i]["Records"] != nil) != (i == 0) {
				t.Errorf("line %d: %d durations, %d waits, records %v", i, len(durations), len(waits), lines[i]["Records"])
			}
		}
	})
}

// Invocations that run at the same time do not mix.
func TestTwoInvocationsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFunction(t, func(_ context.Context, m *sqsonce.Message) error {
			time.Sleep(time.Second)
			if strings.HasPrefix(m.ID, "bad") {
				return errCard
			}
			return nil
		})
		var wg sync.WaitGroup
		for _, id := range []string{"good", "bad"} {
			wg.Go(func() {
				_, _ = f.invoke(request(t, id, time.Minute), events.SQSEvent{Records: []events.SQSMessage{record(id+"1", ""), record(id+"2", "")}})
			})
		}
		wg.Wait()
		want := map[any][2]any{"good": {2.0, 0.0}, "bad": {0.0, 2.0}}
		for _, line := range f.lines() {
			if got := [2]any{line["Done"], line["Failed"]}; got != want[line["requestId"]] || len(line["HandlerDuration"].([]any)) != 2 {
				t.Errorf("%v: done and failed %v", line["requestId"], got)
			}
			delete(want, line["requestId"])
		}
		if len(want) > 0 {
			t.Errorf("no line of %v", want)
		}
	})
}

func TestStoreErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := must.Get(emf.New(func(o *emf.Options) { o.Service, o.Writer = "orders", &out }))(t)
		once := must.Get(dedup.New(away{memstore.New()}, "billing", m.Once, func(o *dedup.Options) { o.Logger = slog.New(slog.DiscardHandler) }))(t)
		handler := once.Handler(func(context.Context, *sqsonce.Message) error { return nil })
		invoke := must.Get(lambda.Wrap(handler, m.Lambda, func(o *lambda.Options) { o.Client, o.Logger = lambda.NoClient, slog.New(slog.DiscardHandler) }))(t)
		_, _ = invoke(request(t, "1", time.Minute), events.SQSEvent{Records: []events.SQSMessage{record("1", "")}})
		f := &function{T: t, out: output{T: t}}
		f.out.Write(out.Bytes())
		if lines := f.lines(); len(lines) != 1 || lines[0]["StoreErrors"] == nil || lines[0]["NotCompleted"] != 1.0 {
			t.Errorf("lines %v, want store errors and a record that was not completed", lines)
		}
		// Without an invocation the Once counts nothing.
		if err := handler(t.Context(), &sqsonce.Message{ID: "2", QueueARN: "arn:aws:sqs:eu-west-1:123456789012:orders", ReceiveCount: 1}); err == nil {
			t.Error("want the error of the store")
		}
	})
}

// away is a store that completes nothing.
type away struct{ dedup.Store }

func (away) Complete(context.Context, dedup.Lease, dedup.Result) error { return errCard }

// A writer that fails harms no message, and is logged once.
func TestWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		old := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(old)
		f := newFunction(t, func(context.Context, *sqsonce.Message) error { return nil }, func(o *emf.Options) { o.Writer = broken{} })
		for i := range 3 {
			response, err := f.invoke(request(t, "1", time.Minute), events.SQSEvent{Records: []events.SQSMessage{record(strconv.Itoa(i), "")}})
			if err != nil || len(response.BatchItemFailures) > 0 {
				t.Errorf("%v, %v", response, err)
			}
		}
		if n := strings.Count(log.String(), "emf: metrics not written"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, log.String())
		}
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errCard }

func TestNewRefuses(t *testing.T) {
	long := strings.Repeat("x", 1025)
	t.Setenv("POWERTOOLS_SERVICE_NAME", "")
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "")
	many := map[string]string{}
	for i := range 28 {
		many[strconv.Itoa(i)] = "x"
	}
	for field, set := range map[string]func(*emf.Options){
		"Options.Namespace":                        func(o *emf.Options) { o.Namespace = "AWS/Lambda" },
		"Options.Namespace ":                       func(o *emf.Options) { o.Namespace = long },
		"Options.Namespace  ":                      func(o *emf.Options) { o.Namespace = ":a" },
		"Options.Service":                          func(o *emf.Options) { o.Service = "" },
		"Options.Service ":                         func(o *emf.Options) { o.Service = long },
		"Options.Service  ":                        func(o *emf.Options) { o.Service = "\xff" },
		"Options.Service   ":                       func(o *emf.Options) { o.Service = "Zahlung für Müller" },
		"Options.Service    ":                      func(o *emf.Options) { o.Service = "a\tb" },
		"Options.Service     ":                     func(o *emf.Options) { o.Service = "a\x7f" },
		"Options.Service      ":                    func(o *emf.Options) { o.Service = "  " },
		"Options.Namespace   ":                     func(o *emf.Options) { o.Namespace = " " },
		"Options.Namespace    ":                    func(o *emf.Options) { o.Namespace = "shop!" },
		"Options.Namespace     ":                   func(o *emf.Options) { o.Namespace = "shöp" },
		"Options.Namespace      ":                  func(o *emf.Options) { o.Namespace = "a\nb" },
		`Options.Dimensions["é"]`:                  func(o *emf.Options) { o.Dimensions = map[string]string{"é": "x"} },
		`Options.Dimensions[" "]`:                  func(o *emf.Options) { o.Dimensions = map[string]string{" ": "x"} },
		`Options.Dimensions["d"]`:                  func(o *emf.Options) { o.Dimensions = map[string]string{"d": "é"} },
		`Options.Dimensions["e"]`:                  func(o *emf.Options) { o.Dimensions = map[string]string{"e": "a\n"} },
		`Options.Dimensions["f"]`:                  func(o *emf.Options) { o.Dimensions = map[string]string{"f": " "} },
		"Options.Dimensions":                       func(o *emf.Options) { o.Dimensions = many },
		`Options.Dimensions[""]`:                   func(o *emf.Options) { o.Dimensions = map[string]string{"": "x"} },
		`Options.Dimensions["a"]`:                  func(o *emf.Options) { o.Dimensions = map[string]string{"a": ""} },
		`Options.Dimensions["b"]`:                  func(o *emf.Options) { o.Dimensions = map[string]string{"b": long} },
		`Options.Dimensions[":c"]`:                 func(o *emf.Options) { o.Dimensions = map[string]string{":c": "x"} },
		`Options.Dimensions["queue"]`:              func(o *emf.Options) { o.Dimensions = map[string]string{"queue": "x"} },
		`Options.Dimensions["Rejected"]`:           func(o *emf.Options) { o.Dimensions = map[string]string{"Rejected": "x"} },
		`Options.Dimensions["` + long[:251] + `"]`: func(o *emf.Options) { o.Dimensions = map[string]string{long[:251]: "x"} },
	} {
		_, err := emf.New(func(o *emf.Options) { o.Service = "orders" }, set)
		if f, ok := errors.AsType[*sqsonce.OptionError](err); !ok || f.Field != strings.TrimSpace(field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "orders")
	delete(many, "0")
	for _, namespace := range []string{long[:1024], "Shop-1.a_b/c#d: e"} {
		if _, err := emf.New(func(o *emf.Options) { o.Namespace, o.Dimensions = namespace, many }); err != nil {
			t.Error(namespace, err)
		}
	}
	must.Get(emf.New(func(o *emf.Options) { o.Dimensions = map[string]string{"cost centre~": " a!ß"[:3]} }))(t)
}
