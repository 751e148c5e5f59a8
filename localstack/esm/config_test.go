package esm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/esm"
)

// fields returns the names of the fields of a joined error.
func fields(err error) (out []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			out = append(out, fields(e)...)
		}
		return out
	}
	if e, ok := errors.AsType[*esm.ConfigError](err); ok {
		out = append(out, e.Field)
	}
	return out
}

// Settings that Lambda refuses are errors before any receive, all of them in one error.
func TestConfig(t *testing.T) {
	const standard, fifo = "https://sqs.us-east-1.amazonaws.com/000000000000/jobs", "https://sqs.us-east-1.amazonaws.com/000000000000/jobs.fifo"
	tests := []struct {
		name string
		cfg  esm.Config
		want []string
	}{
		{"no queue", esm.Config{}, []string{"QueueURL"}},
		{"batch of -1", esm.Config{QueueURL: standard, BatchSize: -1}, []string{"BatchSize"}},
		{"batch of 10,001", esm.Config{QueueURL: standard, BatchSize: 10_001, BatchingWindow: time.Second}, []string{"BatchSize"}},
		{"batch of 11 without window", esm.Config{QueueURL: standard, BatchSize: 11}, []string{"BatchSize"}},
		{"batch of 11, FIFO", esm.Config{QueueURL: fifo, BatchSize: 11}, []string{"BatchSize"}},
		{"window, FIFO", esm.Config{QueueURL: fifo, BatchingWindow: time.Second}, []string{"BatchingWindow"}},
		{"window of 301 s", esm.Config{QueueURL: standard, BatchingWindow: 301 * time.Second}, []string{"BatchingWindow"}},
		{"window of 1.5 s", esm.Config{QueueURL: standard, BatchingWindow: 1500 * time.Millisecond}, []string{"BatchingWindow"}},
		{"window of -1 s", esm.Config{QueueURL: standard, BatchingWindow: -time.Second}, []string{"BatchingWindow"}},
		{"concurrency of 1", esm.Config{QueueURL: standard, MaximumConcurrency: 1}, []string{"MaximumConcurrency"}},
		{"concurrency of 1,001", esm.Config{QueueURL: standard, MaximumConcurrency: 1001}, []string{"MaximumConcurrency"}},
		{"timeout of 901 s", esm.Config{QueueURL: standard, FunctionTimeout: 901 * time.Second}, []string{"FunctionTimeout"}},
		{"timeout of -1 s", esm.Config{QueueURL: standard, FunctionTimeout: -time.Second}, []string{"FunctionTimeout"}},
		{"timeout above the queue's visibility", esm.Config{QueueURL: standard, FunctionTimeout: visibility + time.Second}, []string{"FunctionTimeout"}},
		{"wait of 21 s", esm.Config{QueueURL: standard, Wait: 21 * time.Second}, []string{"Wait"}},
		{"wait of 1 ms", esm.Config{QueueURL: standard, Wait: time.Millisecond}, []string{"Wait"}},
		{"eleven filters", esm.Config{QueueURL: standard, Filters: strings.Split(strings.Repeat("{} ", 10)+"{}", " ")}, []string{"Filters"}},
		{"bad filters", esm.Config{QueueURL: standard, Filters: []string{`{}`, `{`, `[]`}}, []string{"Filters[1]", "Filters[2]"}},
		{"several", esm.Config{BatchSize: 11, MaximumConcurrency: 1, FunctionTimeout: time.Hour, Filters: []string{`x`}},
			[]string{"QueueURL", "BatchSize", "MaximumConcurrency", "FunctionTimeout", "Filters[0]"}},
		{"largest", esm.Config{QueueURL: standard, BatchSize: 10_000, BatchingWindow: 300 * time.Second, MaximumConcurrency: 1000, FunctionTimeout: visibility}, nil},
		{"largest, FIFO", esm.Config{QueueURL: fifo, BatchSize: 10, MaximumConcurrency: 2, FunctionTimeout: visibility}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := tt.cfg.QueueURL[strings.LastIndexByte(tt.cfg.QueueURL, '/')+1:]
			if name == "" {
				name = "jobs"
			}
			onQueue(t, name, func(x *fixture) {
				if len(tt.want) == 0 {
					x.run(tt.cfg, always(t, nil, nil).invoke)
					time.Sleep(time.Second)
					x.mustStop()
					return
				}
				err := esm.Run(x.Context(), x.client, tt.cfg, always(t, nil, nil).invoke)
				if d := cmp.Diff(tt.want, fields(err)); d != "" {
					t.Errorf("bad fields (-want +got):\n%s\n%v", d, err)
				}
				if got := x.calls("ReceiveMessage"); got != 0 {
					t.Errorf("%d receives, want none", got)
				}
			})
		})
	}
}

func TestUnknownQueue(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		err := esm.Run(x.Context(), x.client, esm.Config{QueueURL: x.url + "-not"}, always(t, nil, nil).invoke)
		if _, missing := errors.AsType[*sqstypes.QueueDoesNotExist](err); !missing {
			t.Errorf("Run returned %v, want QueueDoesNotExist", err)
		}
	})
}
