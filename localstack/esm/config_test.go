package esm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// fields returns the names of the fields of a joined error.
func fields(err error) (out []string) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, field, _ := strings.Cut(strings.Split(line, ": ")[1], "Config.")
		out = append(out, field)
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
		{"timeout of 5,401 s", esm.Config{QueueURL: standard, FunctionTimeout: 5401 * time.Second}, []string{"FunctionTimeout"}},
		{"timeout of -1 s", esm.Config{QueueURL: standard, FunctionTimeout: -time.Second}, []string{"FunctionTimeout"}},
		{"timeout above the queue's visibility", esm.Config{QueueURL: standard, FunctionTimeout: visibility + time.Second}, []string{"FunctionTimeout"}},
		{"wait of 21 s", esm.Config{QueueURL: standard, Wait: 21 * time.Second}, []string{"Wait"}},
		{"wait of 1 ms", esm.Config{QueueURL: standard, Wait: time.Millisecond}, []string{"Wait"}},
		{"eleven filters", esm.Config{QueueURL: standard, Filters: strings.Split(strings.Repeat("{} ", 10)+"{}", " ")}, []string{"Filters"}},
		{"bad filters", esm.Config{QueueURL: standard, Filters: []string{`{}`, `{`, `[]`}}, []string{"Filters[1]", "Filters[2]"}},
		{"several", esm.Config{BatchSize: 11, MaximumConcurrency: 1, FunctionTimeout: 2 * time.Hour, Filters: []string{`x`}},
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
					x.during(time.Second, tt.cfg, always(t, nil, nil).invoke)
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

func TestFilters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		patterns []string
		pass     []string
		drop     []string
	}{
		{"none", nil, []string{`{"a":1}`, `text`, `7`}, nil},
		{"empty pattern", []string{`{}`}, []string{`{"a":1}`, `text`}, nil},
		{"plain text", []string{`{"body":["on","off"]}`}, []string{`on`, `off`}, []string{`of`, `{"on":1}`, `"on"`}},
		{"plain text that is JSON", []string{`{"body":["{}",{"prefix":"{"}]}`}, []string{`{`}, []string{`{}`, `{"a":1}`}},
		{"plain text, prefix", []string{`{"body":[{"prefix":"job-"}]}`}, []string{`job-1`}, []string{`1`, `{"job-":1}`}},
		{"string", []string{`{"body":{"a":["x"]}}`}, []string{`{"a":"x"}`, `{"a":"x","b":1}`, `{"a":["w","x"]}`}, []string{`{"a":"y"}`, `{"b":"x"}`, `x`, `{"a":null}`, `{"A":"x"}`, `null`, `{`}},
		{"or in a list", []string{`{"body":{"a":["x","y"]}}`}, []string{`{"a":"x"}`, `{"a":"y"}`}, []string{`{"a":"z"}`}},
		{"and of names", []string{`{"body":{"a":["x"],"b":[1]}}`}, []string{`{"a":"x","b":1}`, `{"a":"x","b":1.0}`}, []string{`{"a":"x"}`, `{"a":"x","b":"1"}`}},
		{"nested", []string{`{"body":{"a":{"b":["x"]}}}`}, []string{`{"a":{"b":"x"}}`, `{"a":[{"b":"w"},{"b":"x"}]}`}, []string{`{"a":"x"}`, `{"b":"x"}`, `{"a":{"b":{"x":1}}}`}},
		{"null, empty, true", []string{`{"body":{"a":[null,"",true]}}`}, []string{`{"a":null}`, `{"a":""}`, `{"a":true}`}, []string{`{}`, `{"a":false}`, `{"a":0}`}},
		{"prefix, suffix, case", []string{`{"body":{"a":[{"prefix":"eu-"},{"suffix":"-1"},{"equals-ignore-case":"none"}]}}`}, []string{`{"a":"eu-x"}`, `{"a":"x-1"}`, `{"a":"NoNe"}`}, []string{`{"a":"x"}`, `{"a":1}`, `{}`}},
		{"anything-but", []string{`{"body":{"a":[{"anything-but":["x",2]}]}}`}, []string{`{"a":"y"}`, `{"a":null}`}, []string{`{"a":"x"}`, `{"a":2}`, `{}`}},
		{"anything-but one", []string{`{"body":{"a":[{"anything-but":"x"}]}}`}, []string{`{"a":"y"}`}, []string{`{"a":"x"}`}},
		{"numeric", []string{`{"body":{"a":[{"numeric":["=",7]}]}}`}, []string{`{"a":7}`}, []string{`{"a":8}`, `{"a":"7"}`, `{}`}},
		{"numeric range", []string{`{"body":{"a":[{"numeric":[">",10,"<=",20]}]}}`}, []string{`{"a":10.5}`, `{"a":20}`}, []string{`{"a":10}`, `{"a":21}`}},
		{"numeric less", []string{`{"body":{"a":[{"numeric":["<",10]},{"numeric":[">=",20]}]}}`}, []string{`{"a":9}`, `{"a":20}`}, []string{`{"a":10}`, `{"a":19}`}},
		{"exists", []string{`{"body":{"a":[{"exists":true}]}}`}, []string{`{"a":null}`, `{"a":1}`}, []string{`{}`, `text`, `{"a":{"b":1}}`}},
		{"does not exist", []string{`{"body":{"a":[{"exists":false}]}}`}, []string{`{}`, `{"b":1}`}, []string{`{"a":1}`, `text`, `null`}},
		{"$or", []string{`{"body":{"$or":[{"a":["x"]},{"b":[1]}],"c":["y"]}}`}, []string{`{"a":"x","c":"y"}`, `{"b":1,"c":"y"}`}, []string{`{"a":"x"}`, `{"c":"y"}`}},
		{"two filters", []string{`{"body":{"a":["x"]}}`, `{"body":["x"]}`}, []string{`{"a":"x"}`, `x`}, []string{`y`, `{"a":"y"}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			onQueue(t, "jobs", func(x *fixture) {
				x.send(tt.pass...)
				x.send(tt.drop...)
				f := always(t, nil, nil)
				x.during(time.Second, esm.Config{Filters: tt.patterns}, f.invoke)
				got, want := slices.Concat(f.got()...), slices.Clone(tt.pass)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("invoked with %q, want %q", got, want)
				}
				x.wantEmpty()
			})
		})
	}
}

func TestBadFilters(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		`{"messageAttributes":{"a":["x"]}}`, `{"body":"x"}`, `{"body":[]}`, `{"body":{}}`, `{"body":{"a":"x"}}`, `{"body":{"a":[]}}`,
		`{"body":{"a":[{"prefix":1}]}}`, `{"body":{"a":[{"exists":1}]}}`, `{"body":{"a":[{"wildcard":"*"}]}}`, `{"body":{"a":[{}]}}`,
		`{"body":{"a":[{"prefix":"a","suffix":"b"}]}}`, `{"body":{"a":[{"anything-but":[true]}]}}`, `{"body":{"a":[["x"]]}}`,
		`{"body":{"a":[{"numeric":[">"]}]}}`, `{"body":{"a":[{"numeric":["!",1]}]}}`, `{"body":{"a":[{"numeric":["=","1"]}]}}`, `{"body":{"a":[{"numeric":1}]}}`,
		`{"body":{"$or":{"a":["x"]}}}`, `{"body":{"$or":[{"a":["x"]}]}}`, `{"body":{"$or":[["x"],["y"]]}}`, `null`, `[]`, ``,
	} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			err := esm.Run(t.Context(), nil, esm.Config{QueueURL: "q", Filters: []string{pattern}}, nil)
			if got := fields(err); !slices.Equal(got, []string{"Filters[0]"}) {
				t.Errorf("Run returned %v, want a ConfigError for Filters[0]", err)
			}
		})
	}
}

// A filtered message whose delete fails is delivered and filtered again: it never reaches the function.
func TestFilteredMessageCannotBeDeleted(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("no", "yes")
		x.inject(fault.Rule{Op: "DeleteMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "ReceiptHandleIsInvalid"})
		f := always(t, nil, nil)
		x.during(2*visibility, esm.Config{Filters: []string{`{"body":["yes"]}`}}, f.invoke)
		f.wantBatches([]string{"yes"})
		x.wantEmpty()
		if !strings.Contains(x.log.String(), "could not be deleted") {
			t.Errorf("log:\n%s", x.log.String())
		}
	})
}
