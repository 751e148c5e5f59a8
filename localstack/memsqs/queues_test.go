package memsqs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

const noQueue = "AWS.SimpleQueueService.NonExistentQueue"

func TestCreateQueue(t *testing.T) {
	standard(t, func(x *fixture) {
		create := func(name string, a attrs) error {
			_, err := x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: a})
			return err
		}
		x.ok(create("jobs", nil))
		x.ok(create("jobs", attrs{"VisibilityTimeout": "30"}))
		err := create("jobs", attrs{"VisibilityTimeout": "31"})
		x.code(err, "QueueAlreadyExists")
		if _, ok := errors.AsType[*types.QueueNameExists](err); !ok {
			x.Errorf("got %T, want QueueNameExists", err)
		}
		x.ok(create(strings.Repeat("q", 80), nil))
		for _, name := range []string{strings.Repeat("q", 81), "a b", "a.b", "a.fifo"} {
			x.code(create(name, nil), invalidValue)
		}
		for _, name := range []string{"a", strings.Repeat("q", 76) + ".fifo", ".fifo"} {
			x.code(create(name, attrs{"FifoQueue": "true"}), invalidValue)
		}
	})
}

func TestDeleteQueue(t *testing.T) {
	standard(t, func(x *fixture) {
		polled := make(chan error)
		go func() {
			_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, WaitTimeSeconds: 20})
			polled <- err
		}()
		time.Sleep(time.Second)
		x.send("a")
		x.ok(<-polled)
		go func() {
			_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, WaitTimeSeconds: 20})
			polled <- err
		}()
		time.Sleep(time.Second)
		_, err := x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url})
		x.ok(err)
		x.code(<-polled, noQueue)
		err = x.try("a")
		x.code(err, noQueue)
		if _, ok := errors.AsType[*types.QueueDoesNotExist](err); !ok {
			x.Errorf("got %T, want QueueDoesNotExist", err)
		}
		_, err = x.c.CreateQueue(x.Context(), &sqs.CreateQueueInput{QueueName: aws.String("jobs")})
		x.code(err, "AWS.SimpleQueueService.QueueDeletedRecently")
		time.Sleep(60 * time.Second)
		x.create("jobs", nil)
		x.want()
	})
}

func TestLookups(t *testing.T) {
	standard(t, func(x *fixture) {
		got, err := x.c.GetQueueUrl(x.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")})
		x.ok(err)
		if *got.QueueUrl != x.url || x.url != "https://sqs.us-east-1.amazonaws.com/000000000000/jobs" {
			x.Errorf("URL %s, want %s", *got.QueueUrl, x.url)
		}
		_, err = x.c.GetQueueUrl(x.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("nowhere")})
		x.code(err, noQueue)
		_, err = x.c.GetQueueUrl(x.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs"), QueueOwnerAWSAccountId: aws.String("111111111111")})
		x.code(err, noQueue)
		for _, n := range []string{"b1", "b2", "a1"} {
			x.create(n, nil)
		}
		var names []string
		pages := sqs.NewListQueuesPaginator(x.c, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("b"), MaxResults: aws.Int32(1)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(x.Context())
			x.ok(err)
			names = append(names, page.QueueUrls...)
		}
		if len(names) != 2 || !strings.HasSuffix(names[0], "/b1") || !strings.HasSuffix(names[1], "/b2") {
			x.Errorf("listed %v, want b1, b2", names)
		}
		for url, code := range map[string]string{
			"https://sqs.us-east-1.amazonaws.com/000000000000/nowhere": noQueue, "https://sqs.us-east-1.amazonaws.com/111111111111/jobs": noQueue,
			"jobs": "", "nowhere": noQueue, "jobs:1": "InvalidAddress", "http://127.0.0.1:1/000000000000/jobs": "", "://": "InvalidAddress",
		} {
			x.url = url
			if err := x.try("a"); code == "" {
				x.ok(err)
			} else {
				x.code(err, code)
			}
		}
	})
}

func TestPurgeQueue(t *testing.T) {
	standard(t, func(x *fixture) {
		x.send("a")
		x.send("b")
		m := x.receive(1)[0]
		purge := func() error {
			_, err := x.c.PurgeQueue(x.Context(), &sqs.PurgeQueueInput{QueueUrl: &x.url})
			return err
		}
		x.ok(purge())
		x.ok(x.delete(m))
		time.Sleep(59 * time.Second)
		x.want()
		x.code(purge(), "AWS.SimpleQueueService.PurgeQueueInProgress")
		time.Sleep(time.Second)
		x.ok(purge())
	})
}

func TestRetention(t *testing.T) {
	run(t, "jobs", attrs{"MessageRetentionPeriod": "60", "VisibilityTimeout": "90"}, func(x *fixture) {
		x.send("a")
		time.Sleep(30 * time.Second)
		x.send("b")
		m := x.receive(1)[0]
		time.Sleep(30*time.Second - 1)
		if n := len(x.srv.Messages("jobs")); n != 2 {
			x.Errorf("%d messages, want 2", n)
		}
		time.Sleep(time.Nanosecond)
		if n := len(x.srv.Messages("jobs")); n != 1 {
			x.Errorf("%d messages, want 1", n)
		}
		x.code(x.visibility(m, 10), invalidValue) // retention also applies in flight
		x.want("b")
		time.Sleep(30 * time.Second)
		x.want()
		if n := x.attributes("ApproximateNumberOfMessagesNotVisible")["ApproximateNumberOfMessagesNotVisible"]; n != "0" {
			x.Errorf("%s messages in flight, want 0", n)
		}
	})
}

func TestTags(t *testing.T) {
	standard(t, func(x *fixture) {
		_, err := x.c.TagQueue(x.Context(), &sqs.TagQueueInput{QueueUrl: &x.url, Tags: map[string]string{"a": "1", "b": "2"}})
		x.ok(err)
		_, err = x.c.UntagQueue(x.Context(), &sqs.UntagQueueInput{QueueUrl: &x.url, TagKeys: []string{"a"}})
		x.ok(err)
		out, err := x.c.ListQueueTags(x.Context(), &sqs.ListQueueTagsInput{QueueUrl: &x.url})
		x.ok(err)
		if d := cmp.Diff(map[string]string{"b": "2"}, out.Tags); d != "" {
			x.Errorf("tags (-want +got):\n%s", d)
		}
	})
}
