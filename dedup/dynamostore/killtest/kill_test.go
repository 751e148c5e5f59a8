package killtest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

const (
	processes = 4
	// usual is the number of kills without KILLS=n in the environment.
	usual = 120
	// drain is how long the remaining events may take after the last kill.
	drain = 5 * time.Minute
)

func TestKillInMemory(t *testing.T) {
	t.Parallel()
	srv := memdynamodb.New()
	t.Cleanup(srv.Close)
	kill(t, "http://dynamodb.local", srv)
}

func TestKillOnDynoxide(t *testing.T) {
	t.Parallel()
	kill(t, testserver.Dynoxide.Shared(t).URL, http.DefaultTransport)
}

// bed has the queues, the tables and the processes.
type bed struct {
	*testing.T
	ddb        *dynamodb.Client
	sqs        *sqs.Client
	queues     map[string]string // URL by consumer
	supervisor *supervisor
	proxy      *proxy
	ledger     *ledger
}

// kill gives the processes more events than they can finish, kills them again and again, waits until the remaining events
// are finished, and checks the histories.
func kill(t *testing.T, ddbURL string, to http.RoundTripper) {
	kills := usual
	if s := os.Getenv("KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	}
	seed := uint64(time.Now().UnixNano())
	b := newBed(t, ddbURL, to, seed, kills)
	b.supervisor.start(processes)
	sent := b.pump()
	b.finish(sent)
	b.supervisor.stop()
	b.proxy.late.Wait()
	b.check(sent)
	for _, p := range []point{atAcquire, atComplete, atCommit, atStart, atEnd} {
		if b.supervisor.kills[p] == 0 {
			t.Errorf("no child was killed at %s", p)
		}
	}
	t.Logf("seed %d: %d events of each consumer, %s", seed, sent, b.supervisor)
}

func newBed(t *testing.T, ddbURL string, to http.RoundTripper, seed uint64, kills int) *bed {
	t.Helper()
	serve := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	target, err := url.Parse(ddbURL)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, queues: map[string]string{}}
	b.proxy = &proxy{to: to, url: target, completed: map[string]time.Time{}}
	b.ledger = &ledger{runs: map[[2]string]*run{}}
	queues := memsqs.New()
	t.Cleanup(queues.Close)
	sqsURL := serve(queues)
	b.sqs = sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(sqsURL), Credentials: aws.CredentialsProviderFunc(credentials)})
	b.ddb = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(ddbURL), HTTPClient: &http.Client{Transport: to},
		Credentials: aws.CredentialsProviderFunc(credentials),
	})
	for _, table := range []string{recordTable, effectTable} { // the table of effects has the same key
		if err := dynamostore.CreateTable(t.Context(), b.ddb, table); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = b.ddb.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
		})
	}
	for _, consumer := range []string{ordersConsumer, booksConsumer} {
		out, err := b.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(consumer)})
		if err != nil {
			t.Fatal(err)
		}
		b.queues[consumer] = *out.QueueUrl
	}
	b.supervisor = newSupervisor(t, seed, kills,
		envSQS+"="+sqsURL, envDDB+"="+serve(b.proxy), envLedger+"="+serve(b.ledger),
		envOrders+"="+b.queues[ordersConsumer], envBooks+"="+b.queues[booksConsumer])
	b.proxy.supervisor, b.ledger.supervisor = b.supervisor, b.supervisor
	return b
}

// pump sends events until the last kill, and returns how many each queue got. Every twentieth event is sent twice.
func (b *bed) pump() (events int) {
	for deadline := time.Now().Add(drain + time.Duration(b.supervisor.toKill)*time.Second); b.supervisor.killing(); {
		if time.Now().After(deadline) {
			b.Fatalf("only %s", b.supervisor)
		}
		if b.waiting(ordersConsumer) > 150 && b.waiting(booksConsumer) > 150 {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		for range 10 {
			events++
			b.send(ordersConsumer, events)
			b.send(booksConsumer, events)
		}
	}
	return events
}

func (b *bed) send(consumer string, event int) {
	copies := 1
	if event%20 == 0 {
		copies = 2
	}
	for range copies {
		_, err := b.sqs.SendMessage(b.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(b.queues[consumer]), MessageBody: aws.String("{}"),
			MessageAttributes: map[string]sqstypes.MessageAttributeValue{
				sqsonce.AttrEventID:     {DataType: aws.String("String"), StringValue: aws.String(fmt.Sprint(event))},
				sqsonce.AttrEventSource: {DataType: aws.String("String"), StringValue: aws.String("test")},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// waiting counts the queue's messages, those in flight and delayed included.
func (b *bed) waiting(consumer string) (n int) {
	out, err := b.sqs.GetQueueAttributes(b.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(b.queues[consumer]), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{
		"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
	} {
		k, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			b.Fatal(err)
		}
		n += k
	}
	return n
}

// finish waits until every event is completed and no message is left, however many receives the kills have cost.
func (b *bed) finish(events int) {
	start := time.Now()
	for {
		done := b.proxy.count()
		if done == 2*events && b.waiting(ordersConsumer)+b.waiting(booksConsumer) == 0 {
			return
		}
		if time.Since(start) > drain {
			b.supervisor.stop()
			b.Fatalf("%s after the last kill: %d of %d events completed; %s", drain, done, 2*events, b.supervisor)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// check checks the runs, the records and the effects.
func (b *bed) check(events int) {
	history := b.ledger.history()
	records, effects := b.scan(recordTable), b.scan(effectTable)
	for _, consumer := range []string{ordersConsumer, booksConsumer} {
		for event := range events {
			id := fmt.Sprintf("test|%d", event+1)
			key := consumer + "#" + id
			for _, wrong := range violations(history[key], b.proxy.completedAt(key)) {
				b.Errorf("%s: %s", key, wrong)
			}
			if got := text(records[key]["status"]); got != "COMPLETED" {
				b.Errorf("%s: its record is %q in the end", key, got)
			}
			if n := text(effects[id]["n"]); consumer == booksConsumer && n != "1" {
				b.Errorf("%s: the inbox's effect happened %q times, want 1", key, n)
			}
		}
	}
}

func (b *bed) scan(table string) map[string]map[string]ddbtypes.AttributeValue {
	items := map[string]map[string]ddbtypes.AttributeValue{}
	pages := dynamodb.NewScanPaginator(b.ddb, &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, item := range page.Items {
			items[text(item["id"])] = item
		}
	}
	return items
}

// text is a string or number, "" for none.
func text(v ddbtypes.AttributeValue) string {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return v.Value
	case *ddbtypes.AttributeValueMemberN:
		return v.Value
	}
	return ""
}
