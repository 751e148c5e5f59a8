package sqsworker

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
)

const goodURL = "https://sqs.us-east-1.amazonaws.com/123456789012/jobs"

// fields lists the bad fields that an error names.
func fields(err error) (names []string) {
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		return nil
	}
	for _, e := range joined.Unwrap() {
		if f, ok := errors.AsType[*sqsonce.OptionError](e); ok && f.Package == "sqsworker" && f.Problem != "" {
			names = append(names, f.Field)
		}
	}
	return names
}

var counts = []string{"Options.Concurrency", "Options.MaxInFlight", "Options.MaxReceivers", "Options.MaxHeld"}

var badOptions = map[string]struct {
	set  func(*Options)
	want []string
}{
	"much":             {func(o *Options) { o.Concurrency = 100_000 }, nil}, // the default of MaxInFlight has a limit
	"attempts":         {func(o *Options) { o.MaxAttempts = -1 }, []string{"Options.MaxAttempts"}},
	"bytes":            {func(o *Options) { o.MaxBytes = 1<<20 - 1 }, []string{"Options.MaxBytes"}},
	"wait short":       {func(o *Options) { o.WaitTime = 500 * time.Millisecond }, []string{"Options.WaitTime"}},
	"wait long":        {func(o *Options) { o.WaitTime = 21 * time.Second }, []string{"Options.WaitTime"}},
	"wait fraction":    {func(o *Options) { o.WaitTime = 1500 * time.Millisecond }, []string{"Options.WaitTime"}},
	"visibility short": {func(o *Options) { o.VisibilityTimeout = time.Millisecond }, []string{"Options.VisibilityTimeout"}},
	"visibility long":  {func(o *Options) { o.VisibilityTimeout = 13 * time.Hour }, []string{"Options.VisibilityTimeout"}},
	"extension short":  {func(o *Options) { o.MaxExtension = time.Second }, []string{"Options.MaxExtension"}},
	"visibility part":  {func(o *Options) { o.VisibilityTimeout = 1500 * time.Millisecond }, []string{"Options.VisibilityTimeout"}},
	"extension below":  {func(o *Options) { o.MaxExtension = -time.Second }, []string{"Options.MaxExtension"}},
	"extension long":   {func(o *Options) { o.MaxExtension = 13 * time.Hour }, []string{"Options.MaxExtension"}},
	"linger":           {func(o *Options) { o.DeleteLinger = time.Minute }, []string{"Options.DeleteLinger"}},
	"queue arn":        {func(o *Options) { o.QueueARN = "arn:aws:sqs:eu-west-1:123456789012:other" }, []string{"Options.QueueARN"}},
	"dlq malformed":    {func(o *Options) { o.DeadLetterQueue = "arn:aws:sqs:x" }, []string{"Options.DeadLetterQueue"}},
	"dlq itself":       {func(o *Options) { o.DeadLetterQueue = goodURL }, []string{"Options.DeadLetterQueue"}},
	"dlq kind":         {func(o *Options) { o.DeadLetterQueue = goodURL + ".fifo" }, []string{"Options.DeadLetterQueue"}},
	"negative":         {func(o *Options) { o.Concurrency, o.MaxInFlight, o.MaxReceivers, o.MaxHeld = -1, -1, -1, -1 }, counts},
	"one beyond": {func(o *Options) {
		o.Concurrency, o.MaxInFlight, o.MaxReceivers, o.MaxHeld = 120_001, 120_001, 12_001, 480_001
	}, counts},
	"the most": {func(o *Options) {
		o.Concurrency, o.MaxInFlight, o.MaxReceivers, o.MaxHeld = 120_000, 120_000, 12_000, 480_000
		o.WaitTime, o.VisibilityTimeout, o.MaxExtension, o.DeleteLinger = 20*time.Second, 12*time.Hour, 12*time.Hour, time.Second
	}, nil},
	"off": {func(o *Options) {
		o.DeleteLinger, o.StopTimeout, o.StopGrace, o.Delayed = -1, -1, -1, -1
	}, nil},
	"delayed": {func(o *Options) { o.Delayed = 120_001 }, []string{"Options.Delayed"}},
	"all": {func(o *Options) {
		o.Concurrency, o.MaxInFlight, o.MaxBytes, o.MaxReceivers, o.WaitTime = 1, 1, 1<<20, 1, time.Second
		o.VisibilityTimeout, o.MaxExtension, o.DeadLetterQueue = time.Second, time.Second, goodURL+"-dlq"
	}, nil},
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range badOptions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := New(stubClient{}, goodURL, ok, tc.set)
			if got := fields(err); !slices.Equal(got, tc.want) || (err == nil) != (w != nil) {
				t.Errorf("fields: got %v, want %v (%v)", got, tc.want, err)
			}
		})
	}
}

// TestEveryOptionHasItsLimits: a new field has a row above, or is here with the reason why every value will do.
func TestEveryOptionHasItsLimits(t *testing.T) {
	t.Parallel()
	known := map[string]string{
		"Timeout": "nil is none, and what it returns is none if negative", "StopTimeout": "negative is none",
		"StopGrace": "negative is none", "Backoff": "nil is the default, and what it returns is bounded", "Logger": "nil is none",
		"Hooks": "nil fields are not called", "OnError": "nil is none", "Intake": "nil is any number, and what it returns is bounded", "ErrorText": "nil is the default",
	}
	for name, row := range badOptions {
		for _, field := range row.want {
			known[strings.TrimPrefix(field, "Options.")] = name
		}
	}
	for f := range reflect.TypeFor[Options]().Fields() {
		if known[f.Name] == "" {
			t.Errorf("Options.%s has no row", f.Name)
		}
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	_, err := New(nil, "", nil, func(o *Options) { o.WaitTime = -1 })
	want := []string{"client", "handler", "queueURL", "Options.WaitTime"}
	if got := fields(err); !slices.Equal(got, want) {
		t.Errorf("fields: got %v, want all of %v at once", got, want)
	}
	if _, err := New((*sqs.Client)(nil), goodURL, ok); !slices.Equal(fields(err), []string{"client"}) {
		t.Errorf("nil *sqs.Client: got %v", err)
	}
	for _, bad := range []string{"jobs", "ftp://host/jobs", "https://host/", "https://host/a b", "https:///jobs", "https://host/jobs.fifo.x", "://"} {
		if _, err := New(stubClient{}, bad, ok); !slices.Equal(fields(err), []string{"queueURL"}) {
			t.Errorf("queue URL %q: got %v", bad, err)
		}
	}
	for _, good := range []string{goodURL, goodURL + ".fifo", "http://localhost:4566/000000000000/jobs",
		"http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/jobs"} {
		if _, err := New(stubClient{}, good, ok); err != nil {
			t.Errorf("queue URL %q: got %v", good, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	most := 32 * runtime.GOMAXPROCS(0)
	for name, c := range map[string]struct{ given, want Options }{
		"none":            {Options{}, Options{Concurrency: 10, MaxInFlight: 30, MaxHeld: 120, MaxReceivers: 3}},
		"one handler":     {Options{Concurrency: 1}, Options{Concurrency: 1, MaxInFlight: 12, MaxHeld: 48, MaxReceivers: 2}},
		"few in flight":   {Options{MaxInFlight: 1}, Options{Concurrency: 10, MaxInFlight: 1, MaxHeld: 30, MaxReceivers: 1}},
		"tens":            {Options{MaxInFlight: 20}, Options{Concurrency: 10, MaxInFlight: 20, MaxHeld: 80, MaxReceivers: 2}},
		"one more":        {Options{MaxInFlight: 21}, Options{Concurrency: 10, MaxInFlight: 21, MaxHeld: 84, MaxReceivers: min(3, most)}},
		"as many as ever": {Options{Concurrency: 120_000}, Options{Concurrency: 120_000, MaxInFlight: 120_000, MaxHeld: 480_000, MaxReceivers: most}},
	} {
		o := c.given
		o.setDefaults()
		if got := (Options{Concurrency: o.Concurrency, MaxInFlight: o.MaxInFlight, MaxHeld: o.MaxHeld, MaxReceivers: o.MaxReceivers}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
