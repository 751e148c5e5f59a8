package killtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// The environment variables of a child.
const (
	envChild  = "KILLTEST_CHILD" // its number
	envSQS    = "KILLTEST_SQS"
	envDDB    = "KILLTEST_DDB"
	envLedger = "KILLTEST_LEDGER"
	envOrders = "KILLTEST_ORDERS" // queue URLs
	envBooks  = "KILLTEST_BOOKS"
)

const (
	childHeader = "X-Killtest-Child"

	recordTable = "dedup"
	effectTable = "effects"

	ordersConsumer = "orders" // with a Once
	booksConsumer  = "books"  // with an Inbox

	lease      = time.Second // the least there is
	visibility = 8 * time.Second
	slots      = 4 // of each worker
)

// named sends a child's number with each of its requests.
type named struct{ child string }

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(childHeader, n.child)
	return http.DefaultTransport.RoundTrip(r)
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
}

func runChild() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(0)
	}()
	fatal := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
	}
	child := os.Getenv(envChild)
	l := ledgerClient{url: os.Getenv(envLedger), http: &http.Client{Transport: named{child}}}
	store, err := dynamostore.New(dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv(envDDB)),
		HTTPClient: l.http, Credentials: aws.CredentialsProviderFunc(credentials),
	}), recordTable)
	fatal(err)
	options := func(o *dedup.Options) { o.Lease = lease }
	once, err := dedup.New(store, ordersConsumer, options)
	fatal(err)
	inbox, err := dynamostore.NewInbox(store, booksConsumer, options)
	fatal(err)

	queues := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv(envSQS)), Credentials: aws.CredentialsProviderFunc(credentials),
		HTTPClient: sqsworker.HTTPClient(2 * slots),
	})
	ended := make(chan error, 2)
	for url, h := range map[string]sqsonce.Handler{
		os.Getenv(envOrders): once.Handler(l.order),
		os.Getenv(envBooks):  inbox.Handler(l.book),
	} {
		w, err := sqsworker.New(queues, url, h, func(o *sqsworker.Options) {
			o.Concurrency, o.InFlight, o.Wait, o.Visibility = slots, slots, time.Second, visibility
			// Each kill costs a receive, and the default backoff after several receives is as long as drain.
			o.Backoff = func(int) time.Duration { return time.Second }
		})
		fatal(err)
		go func() { ended <- w.Run(context.Background()) }()
	}
	fatal(<-ended)
}

// entry is what a handler reports to the ledger about its run.
type entry struct {
	Child, Key, Owner string
	Fence             int64
	Until             time.Time // end of the lease when the handler started
}

type ledgerClient struct {
	url  string
	http *http.Client
}

func (l ledgerClient) report(ctx context.Context, what string, e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+what, bytes.NewReader(b))
	if err != nil {
		return err
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ledger: %s", resp.Status)
	}
	return nil
}

var errFirst = errors.New("the first run fails")

func (l ledgerClient) handle(ctx context.Context, m *sqsonce.Message, effect func(event string)) error {
	lease, ok := dedup.LeaseFrom(ctx)
	if !ok {
		return fmt.Errorf("no lease")
	}
	e := entry{Child: os.Getenv(envChild), Key: lease.Key, Owner: lease.Owner, Fence: lease.Fence, Until: lease.Until}
	if err := l.report(ctx, "/start", e); err != nil {
		return err
	}
	d, fails := plan(lease.Key)
	time.Sleep(d)
	if fails && m.ReceiveCount == 1 {
		return errors.Join(errFirst, l.report(ctx, "/fail", e))
	}
	if effect != nil {
		effect(lease.Key[strings.IndexByte(lease.Key, '#')+1:])
	}
	return l.report(ctx, "/end", e)
}

// plan returns how long the handler takes, a few milliseconds or for some events longer than a lease, and whether its first
// run fails.
func plan(key string) (d time.Duration, fails bool) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	switch n := h.Sum32() % 64; n {
	case 0:
		return lease + lease/2, false
	case 1, 2, 3, 4:
		return 0, true
	default:
		return time.Duration(n%8) * time.Millisecond, false
	}
}

// order has an effect outside DynamoDB: its entry in the ledger.
func (l ledgerClient) order(ctx context.Context, m *sqsonce.Message) error {
	return l.handle(ctx, m, nil)
}

// book has an effect in DynamoDB. Only the transaction makes it happen once.
func (l ledgerClient) book(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
	return l.handle(ctx, m, func(event string) {
		tx.Update(&ddbtypes.Update{
			TableName: aws.String(effectTable), Key: map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: event}},
			UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":one": &ddbtypes.AttributeValueMemberN{Value: "1"}},
		})
	})
}
