package fifo_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
)

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
			if diff := cmp.Diff(tt.want, fields(err)); diff != "" {
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
	if diff := cmp.Diff([]string{"client"}, fields(err)); diff != "" {
		t.Errorf("a nil *sqs.Client: fields (-want +got):\n%s\n%v", diff, err)
	}
}

// A standard queue needs no group; a fair queue gets the one that there is.
func TestGroupIsOptionalOnAStandardQueue(t *testing.T) {
	t.Parallel()
	bubble(t, standard, func(x *fixture) {
		p := x.publisher()
		_, err := p.PublishAll(x.Context(), []fifo.Event{{ID: "1", Body: "without"}, {ID: "2", Group: "tenant", Body: "with"}})
		if err != nil {
			x.Fatal(err)
		}
		if diff := cmp.Diff([][]string{{"without"}, {"with"}}, [][]string{x.queued(""), x.queued("tenant")}); diff != "" {
			x.Errorf("queue (-want +got):\n%s", diff)
		}
	})
	bubble(t, orders, func(x *fixture) {
		_, err := x.publisher().Publish(context.Background(), fifo.Event{ID: "1", Body: "without"})
		if diff := cmp.Diff([]string{"Event.Group"}, fields(err)); diff != "" {
			x.Errorf("FIFO queue: fields (-want +got):\n%s", diff)
		}
	})
}
