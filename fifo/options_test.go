package fifo_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/proof/netfault"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/thaw/thawtest"
)

func TestNewPublisherRefuses(t *testing.T) {
	t.Parallel()
	client := testaws.SQS(nil)
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
			if diff := cmp.Diff(tt.want, testaws.Fields(err)); diff != "" {
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
		if _, err := fifo.NewPublisher(testaws.SQS(nil), url, "com.example/orders:v1_-"); err != nil {
			t.Errorf("NewPublisher(%q): %v", url, err)
		}
	}
}

// A publisher that NewPublisher did not make has no capacity: each event would wait for it until its context ends. It says nothing of
// the event.
func TestZeroPublisher(t *testing.T) {
	t.Parallel()
	var p fifo.Publisher
	e := event("g", 1)
	_, published := p.Publish(t.Context(), e)
	_, enqueued := p.Enqueue(t.Context(), e)
	_, _, checked := fifokit.Check(&p, e)
	for _, err := range []error{published, enqueued, checked} {
		if !cmp.Equal(testaws.Fields(err), []string{"Publisher"}) || !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, fifo.ErrRefused) {
			t.Errorf("%v, want ErrNotSent and an OptionError of Publisher", err)
		}
	}
}

// A client of another region would send to a queue that does not exist, or that is another one.
func TestRegionOfTheClient(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, url string
		change    func(*sqs.Options)
		want      []string
	}{
		{"the queue's", "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", func(*sqs.Options) {}, nil},
		{"another", "https://sqs.us-east-1.amazonaws.com/123456789012/orders", func(*sqs.Options) {}, []string{"queueURL"}},
		{"another in China", "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders", func(*sqs.Options) {}, []string{"queueURL"}},
		{"an emulator's URL", "http://localhost:4566/000000000000/orders", func(*sqs.Options) {}, nil},
		{"an endpoint of its own", "https://sqs.us-east-1.amazonaws.com/123456789012/orders",
			func(o *sqs.Options) { o.BaseEndpoint = aws.String("http://localhost:4566") }, nil},
		{"no region", "https://sqs.us-east-1.amazonaws.com/123456789012/orders", func(o *sqs.Options) { o.Region = "" }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := sqs.New(sqs.Options{Region: "eu-west-1"}, tt.change)
			_, err := fifo.NewPublisher(c, tt.url, "orders")
			if diff := cmp.Diff(tt.want, testaws.Fields(err)); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

// brokenOptions is a wrapper whose Options panics. It sends nothing.
type brokenOptions struct{ fifo.Client }

func TestClientWithoutUsableOptions(t *testing.T) {
	t.Parallel()
	const url = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
	if _, err := fifo.NewPublisher(brokenOptions{}, url, "orders"); err != nil {
		t.Errorf("Options panics: %v, want no error", err)
	}
	var none *sqs.Client
	_, err := fifo.NewPublisher(none, url, "orders")
	if diff := cmp.Diff([]string{"client"}, testaws.Fields(err)); diff != "" {
		t.Errorf("a nil *sqs.Client: fields (-want +got):\n%s\n%v", diff, err)
	}
}

// invocation publishes eighty events in eight requests, each of which has a connection of its own.
func invocation(x *fixture, p *fifo.Publisher, n int) time.Duration {
	x.Helper()
	start := time.Now()
	must.Get(p.PublishAll(x.Context(), each(80, n)))(x)
	return time.Since(start)
}

// onMortalConnections runs a test with a publisher that has published once, on connections that n kills.
func onMortalConnections(t *testing.T, f func(x *fixture, p *fifo.Publisher, n *thawtest.Network)) {
	bubble(t, orders, func(x *fixture) {
		n := thawtest.New(x.T, x.srv)
		x.sent.Client = sqs.New(x.sqs.Options(), func(o *sqs.Options) { o.HTTPClient = n.Client() })
		p := x.publisher()
		invocation(x, p, 1)
		f(x, p, n)
	})
}

// During a freeze all idle connections of the client break, and the client is not informed. After it requests do not wait for an
// answer on one of them.
func TestConnectionsThatDiedInAFreeze(t *testing.T) {
	onMortalConnections(t, func(x *fixture, p *fifo.Publisher, n *thawtest.Network) {
		n.Kill()
		time.Sleep(time.Minute)
		if took := invocation(x, p, 2); took != thawtest.Latency {
			x.Errorf("after the freeze: took %s, want that of one answer", took)
		}
	})
}

// Connections that die together while the publisher works cost one attempt, and not one for each: a standard queue gets three.
func TestConnectionsThatDieTogether(t *testing.T) {
	onMortalConnections(t, func(x *fixture, p *fifo.Publisher, n *thawtest.Network) {
		n.Kill()
		time.Sleep(time.Second)
		before := p.Stats().Requests
		must.Get(p.Publish(x.Context(), event("g", 2)))(x)
		if sent := p.Stats().Requests - before; sent != 2 {
			x.Errorf("%d attempts, want the one that timed out and one more", sent)
		}
	})
}

func proxy(t *testing.T, server string) *netfault.Proxy {
	t.Helper()
	p := must.Get(netfault.Start(server))(t)
	t.Cleanup(func() { _ = p.Close() })
	return p
}
