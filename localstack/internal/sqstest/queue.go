package sqstest

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/suite"
)

var queueCases = []testCase{
	// API CreateQueue: "If you specify the name of an existing queue and provide the exact same names and values for all its
	// attributes, the CreateQueue action will return the URL of the existing queue". Without attributes it always does:
	// test_create_queue_after_modified_attributes of LocalStack, which passes on AWS.
	{name: "queue/created twice alike", run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "40"})
		for _, again := range []*queue{x.create(q.name, attrs{"VisibilityTimeout": "40"}), x.create(q.name)} {
			if again.url != q.url {
				x.fatalf("URLs %s and %s of one queue", q.url, again.url)
			}
		}
	}},
	// API GetQueueUrl.
	{name: "queue/URL by name", run: func(x *exam) {
		q := x.standard()
		out := suite.Get(x.c.GetQueueUrl(x.ctx, &sqs.GetQueueUrlInput{QueueName: &q.name}))
		if *out.QueueUrl != q.url || !strings.HasSuffix(q.url, "/"+q.name) {
			x.fatalf("URL %s, want %s, which ends in the name", *out.QueueUrl, q.url)
		}
	}},
	// API, errors of every operation on a queue: QueueDoesNotExist.
	{name: "queue/unknown", run: func(x *exam) {
		_, err := x.c.GetQueueUrl(x.ctx, &sqs.GetQueueUrlInput{QueueName: ptr(x.name())})
		x.fails("GetQueueUrl", err, noQueue)
		q := x.standard()
		missing := &queue{url: strings.TrimSuffix(q.url, q.name) + x.name()}
		_, err = x.trySend(missing, "a")
		x.fails("SendMessage", err, noQueue)
		_, err = x.c.ReceiveMessage(x.ctx, &sqs.ReceiveMessageInput{QueueUrl: &missing.url})
		x.fails("ReceiveMessage", err, noQueue)
		_, err = x.trySendBatch(missing, entries("a"))
		x.fails("SendMessageBatch", err, noQueue)
		x.fails("DeleteMessage", x.tryDelete(missing, ptr("garbage")), noQueue)
		_, err = x.c.DeleteQueue(x.ctx, &sqs.DeleteQueueInput{QueueUrl: &missing.url})
		x.fails("DeleteQueue", err, noQueue)
	}},
	// Guide sqs-queue-message-identifiers, queue name: "unique for your AWS account and region". An API request goes to one Region.
	{name: "queue/of another Region", run: func(x *exam) {
		q := x.standard()
		elsewhere := *x
		elsewhere.c = sqs.New(x.c.Options(), func(o *sqs.Options) { o.Region = otherRegion(o.Region) })
		_, err := elsewhere.c.GetQueueUrl(x.ctx, &sqs.GetQueueUrlInput{QueueName: &q.name})
		x.fails("GetQueueUrl", err, noQueue)
		_, err = elsewhere.trySend(q, "a")
		x.fails("SendMessage", err, noQueue)
	}},
	// API ListQueues, QueueNamePrefix: "Only those queues whose name begins with the specified string are returned." With MaxResults, NextToken is set while there are more queues.
	{name: "queue/list by prefix and pages", run: func(x *exam) {
		prefix := x.name()
		var want, got []string
		for _, n := range []string{"-a", "-b", "-c"} {
			want = append(want, x.create(prefix+n).url)
		}
		x.standard()
		in := &sqs.ListQueuesInput{QueueNamePrefix: &prefix, MaxResults: ptr(int32(2))}
		for range want {
			out := suite.Get(x.c.ListQueues(x.ctx, in))
			if len(out.QueueUrls) > 2 {
				x.fatalf("a page of %d, want at most 2", len(out.QueueUrls))
			}
			got = append(got, out.QueueUrls...)
			if in.NextToken = out.NextToken; in.NextToken == nil {
				break
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			x.fatalf("got %v, want %v", got, want)
		}
	}},
	// API DeleteQueue: "When you delete a queue, any messages in the queue are no longer available."
	{name: "queue/deleted", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		_, err := x.c.DeleteQueue(x.ctx, &sqs.DeleteQueueInput{QueueUrl: &q.url})
		x.ok(err)
		x.pass(2 * time.Second)
		_, err = x.trySend(q, "b")
		x.fails("SendMessage", err, noQueue)
	}},
	// API CreateQueue, errors: QueueDeletedRecently ("You must wait 60 seconds after deleting a queue before you can create
	// another queue with the same name").
	{name: "queue/name free again after 60 s", passes: time.Minute, run: func(x *exam) {
		q := x.standard()
		x.send(q, "a")
		_, err := x.c.DeleteQueue(x.ctx, &sqs.DeleteQueueInput{QueueUrl: &q.url})
		x.ok(err)
		x.pass(50 * time.Second)
		_, err = x.tryCreate(q.name)
		x.fails("the name after 50 s", err, "QueueDeletedRecently")
		x.pass(10 * time.Second)
		x.none(x.create(q.name))
	}},
	// API CreateQueue, QueueName: "up to 80 characters", "alphanumeric characters, hyphens (-), and underscores (_)".
	{name: "queue/names refused", run: func(x *exam) {
		for _, n := range []string{"a b", "a.b", "a/b", "ä", strings.Repeat("n", 81)} {
			_, err := x.tryCreate(n)
			x.fails("the name "+n, err, invalidValue)
		}
	}},
	// API CreateQueue: "A FIFO queue name must end with the .fifo suffix."
	{name: "queue/FIFO name without suffix refused", run: func(x *exam) {
		_, err := x.tryCreate(x.name(), attrs{"FifoQueue": "true"})
		x.fails("a FIFO queue without .fifo", err, invalidValue)
	}},
	// As above: a period is legal only in the suffix of a FIFO queue.
	{name: "queue/suffix without FIFO refused", run: func(x *exam) {
		_, err := x.tryCreate(x.name() + ".fifo")
		x.fails(".fifo without FifoQueue", err, invalidValue)
	}},
	// As above: the suffix counts as part of the 80 characters.
	{name: "queue/longest name", run: func(x *exam) {
		n := x.name()
		n += strings.Repeat("n", 75-len(n))
		x.create(n+".fifo", attrs{"FifoQueue": "true"})
		_, err := x.tryCreate(n+"n.fifo", attrs{"FifoQueue": "true"})
		x.fails("81 characters", err, invalidValue)
	}},
	// API TagQueue, UntagQueue, ListQueueTags: "A new tag with a key identical to that of an existing tag overwrites".
	{name: "queue/tags", run: func(x *exam) {
		q := x.standard()
		for _, one := range []map[string]string{{"a": "1", "b": "2"}, {"b": "3"}} {
			suite.Get(x.c.TagQueue(x.ctx, &sqs.TagQueueInput{QueueUrl: &q.url, Tags: one}))
		}
		suite.Get(x.c.UntagQueue(x.ctx, &sqs.UntagQueueInput{QueueUrl: &q.url, TagKeys: []string{"a"}}))
		out := suite.Get(x.c.ListQueueTags(x.ctx, &sqs.ListQueueTagsInput{QueueUrl: &q.url}))
		if _, there := out.Tags["a"]; there || out.Tags["b"] != "3" {
			x.fatalf("tags %v, want b=3 and no a", out.Tags)
		}
	}},
}

var purgeCases = []testCase{
	// API PurgeQueue: "Deletes available messages in a queue (including in-flight messages)". AWS may need 60 s; the
	// servers here need no time.
	{name: "purge/everything", passes: 2 * time.Second, run: func(x *exam) {
		q := x.standard(attrs{"VisibilityTimeout": "1"})
		x.sendAll(q, "a", "b")
		x.receive(q, 1)
		x.send(q, "c", delay(1))
		x.ok(x.purge(q))
		x.pass(2 * time.Second)
		x.none(q)
		x.send(q, "d")
		x.one(q, "d")
	}},
	// Recorded: test_successive_purge_calls_fail. API PurgeQueue, errors: PurgeQueueInProgress ("Indicates that the specified
	// queue previously received a PurgeQueue request within the last 60 seconds").
	{name: "purge/again within 60 s refused", run: func(x *exam) {
		q := x.standard()
		x.ok(x.purge(q))
		x.fails("a second purge", x.purge(q), "PurgeQueueInProgress")
	}},
	// As above.
	{name: "purge/again after 60 s", passes: time.Minute, run: func(x *exam) {
		q := x.standard()
		x.ok(x.purge(q))
		x.pass(50 * time.Second)
		x.fails("a purge after 50 s", x.purge(q), "PurgeQueueInProgress")
		x.pass(10 * time.Second)
		x.ok(x.purge(q))
	}},
	// Recorded: test_purge_queue_clears_fifo_deduplication_cache.
	{name: "purge/forgets deduplication", run: func(x *exam) {
		q := x.fifo()
		x.send(q, "a1")
		x.ok(x.purge(q))
		x.send(q, "a1")
		x.want(q, "a1")
	}},
}

func (x *exam) purge(q *queue) error {
	_, err := x.c.PurgeQueue(x.ctx, &sqs.PurgeQueueInput{QueueUrl: &q.url})
	return err
}

func otherRegion(region string) string {
	if region == "us-east-1" {
		return "us-west-2"
	}
	return "us-east-1"
}
