package fifo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
)

func TestNewPublisherRefuses(t *testing.T) {
	t.Parallel()
	client := newClient(nil)
	const good = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo"
	tests := []struct {
		name, url, namespace string
		client               fifo.Client
		opts                 fifo.Options
		want                 []string
	}{
		{name: "nil client", url: good, namespace: "orders", want: []string{"client"}},
		{name: "no URL", namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "a name", url: "orders.fifo", namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "an ARN", url: "arn:aws:sqs:eu-west-1:123456789012:orders.fifo", namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "no queue", url: "https://sqs.eu-west-1.amazonaws.com/", namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "no base name", url: "https://sqs.local/1/.fifo", namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "a name of 81", url: "https://sqs.local/1/" + strings.Repeat("x", 81), namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "a query", url: good + "?x=1", namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "an escaped name", url: "https://sqs.local/1/orders%2Efifo", namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "not a URL", url: "https://sqs\x7f/", namespace: "orders", client: client, want: []string{"queueURL"}},
		{name: "no namespace", url: good, client: client, want: []string{"namespace"}},
		{name: "namespace with |", url: good, namespace: "a|b", client: client, want: []string{"namespace"}},
		{name: "namespace of 49", url: good, namespace: strings.Repeat("x", 49), client: client, want: []string{"namespace"}},
		{name: "namespace with a line", url: good, namespace: "a\n", client: client, want: []string{"namespace"}},
		{name: "options", url: good, namespace: "orders", client: client,
			opts: fifo.Options{MaxRequests: -1, MaxMessages: -1, MaxBytes: 1<<20 - 1},
			want: []string{"Options.MaxRequests", "Options.MaxMessages", "Options.MaxBytes"}},
		{name: "all at once", want: []string{"client", "queueURL", "namespace"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := fifo.NewPublisher(tt.client, tt.url, tt.namespace, func(o *fifo.Options) { *o = tt.opts })
			if p != nil || err == nil {
				t.Fatalf("NewPublisher = %v, %v, want an error only", p, err)
			}
			if diff := cmp.Diff(tt.want, fields(err)); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func TestNewPublisherTakes(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo",
		"http://localhost:4566/000000000000/orders",
		"http://sqs.eu-west-1.localhost.localstack.cloud:4566/000000000000/orders.fifo",
		"http://localhost:4566/queue/eu-west-1/000000000000/orders",
		"https://sqs.local/1/" + strings.Repeat("x", 75) + ".fifo",
	} {
		if _, err := fifo.NewPublisher(newClient(nil), url, "com.example/orders:v1_-"); err != nil {
			t.Errorf("NewPublisher(%q): %v", url, err)
		}
	}
}

// A publisher that NewPublisher did not make has no capacity: each event would wait for it until its context ends.
func TestZeroPublisher(t *testing.T) {
	t.Parallel()
	var p fifo.Publisher
	e := fifo.Event{ID: "1", Body: "b"}
	_, published := p.Publish(t.Context(), e)
	_, enqueued := p.Enqueue(t.Context(), e)
	for _, err := range []error{published, enqueued} {
		if f, ok := errors.AsType[*sqsonce.OptionError](err); !ok || f.Field != "Publisher" || !errors.Is(err, fifo.ErrNotSent) {
			t.Errorf("got error %v, want ErrNotSent and a OptionError", err)
		}
	}
}
