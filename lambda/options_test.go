package lambda

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

func TestWrapReportsEveryBadField(t *testing.T) {
	t.Parallel()
	handler, client := fails(nil), sqs.New(sqs.Options{Region: "us-east-1"})
	for _, tt := range []struct {
		name string
		h    sqsonce.Handler
		set  func(*Options)
		want []string
	}{
		{"nothing set", handler, func(*Options) {}, nil},
		{"no handler", nil, func(*Options) {}, []string{"handler"}},
		{"negative", handler, func(o *Options) { o.Concurrency, o.Margin = -1, -1 }, []string{"Options.Concurrency", "Options.Margin"}},
		{"margin above any timeout", handler, func(o *Options) { o.Margin = time.Hour }, []string{"Options.Margin"}},
		{"margin as long as the longest timeout", handler, func(o *Options) { o.Margin = 15 * time.Minute }, nil},
		{"nil client", handler, func(o *Options) { o.Client = (*sqs.Client)(nil) }, []string{"Options.Client"}},
		{"no client", handler, func(o *Options) {
			o.DeadLetterQueue, o.Backoff = "https://sqs.us-east-1.amazonaws.com/0/q", func(int) time.Duration { return 0 }
		}, []string{"Options.DeadLetterQueue", "Options.Backoff"}},
		{"an ARN for a URL", handler, func(o *Options) { o.Client, o.DeadLetterQueue = client, standardARN }, []string{"Options.DeadLetterQueue"}},
		{"a name for a URL", handler, func(o *Options) { o.Client, o.DeadLetterQueue = client, "jobs-dlq" }, []string{"Options.DeadLetterQueue"}},
		{"another nil client", handler, func(o *Options) { o.Client = (*stubClient)(nil) }, []string{"Options.Client"}},
		{"no client wanted", handler, func(o *Options) {
			o.Client, o.DeadLetterQueue = NoClient, "https://sqs.us-east-1.amazonaws.com/0/q"
		}, []string{"Options.DeadLetterQueue"}},
		{"no Region", handler, func(o *Options) { o.Client = sqs.New(sqs.Options{}) }, []string{"Options.Client"}},
		{"a client alone", handler, func(o *Options) { o.Client = client }, nil},
		{"all at once", nil, func(o *Options) {
			o.Concurrency, o.Margin, o.DeadLetterQueue = -5, -time.Second, "x"
		}, []string{"handler", "Options.Concurrency", "Options.Margin", "Options.DeadLetterQueue", "Options.DeadLetterQueue"}},
	} {
		f, err := Wrap(tt.h, tt.set)
		if diff := cmp.Diff(tt.want, testaws.Fields(err)); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", tt.name, diff)
		}
		if (f == nil) != (err != nil) {
			t.Errorf("%s: got function %t and error %v", tt.name, f != nil, err)
		}
	}
}
