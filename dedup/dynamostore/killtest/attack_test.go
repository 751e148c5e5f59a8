// Package killtest_test has a fleet of processes use one table while they are killed, stopped and cut off: see package attack.
package killtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/proof/attack"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestAttackInMemory(t *testing.T) {
	t.Parallel()
	attack.Run(t, func(t *testing.T) string {
		srv := memdynamodb.New()
		t.Cleanup(srv.Close)
		s := httptest.NewServer(srv)
		t.Cleanup(s.Close)
		return createAttacked(t, s.URL)
	}, attacked)
}

func TestAttackOnDynoxide(t *testing.T) {
	t.Parallel()
	attack.Run(t, func(t *testing.T) string { return createAttacked(t, testserver.Dynoxide.Shared(t).URL) }, attacked)
}

const attackedRecords, attackedEffects = "attacked", "attacked-effects"

func createAttacked(t *testing.T, url string) (addr string) {
	addr = strings.TrimPrefix(url, "http://")
	direct := attackClient(t, addr, new(illness))
	for _, table := range []string{attackedRecords, attackedEffects} {
		must.Do(t, dynamostore.CreateTable(t.Context(), direct, table))
		t.Cleanup(func() {
			_, _ = direct.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
		})
	}
	return addr
}

func attacked(addr string) attack.Target {
	var ill illness
	store := func(t *testing.T, addr string) *dynamostore.Store {
		return must.Get(dynamostore.New(attackClient(t, addr, &ill), attackedRecords))(t)
	}
	return attack.Target{
		Addr:    addr,
		Doubles: true,
		// DynamoDB tells the time in seconds: a lease is over for others up to 2.4 s after its end.
		Takeover: 4 * time.Second,
		Faults:   ill.faults(),
		Store:    func(t *testing.T, addr string) dedup.Store { return &defective{store(t, addr), os.Getenv(envDefect)} },
		Inbox: func(t *testing.T, addr string, work func(context.Context, string) error) sqsonce.Handler {
			inbox := must.Get(dynamostore.NewInbox(store(t, addr), "inbox", attack.Options))(t)
			return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
				tx.Update(&ddbtypes.Update{
					TableName: aws.String(attackedEffects), Key: map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: m.ID}},
					UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":one": &ddbtypes.AttributeValueMemberN{Value: "1"}},
				})
				return work(ctx, m.ID)
			})
		},
		Effects: func(t *testing.T) map[string]int {
			counts := map[string]int{}
			pages := dynamodb.NewScanPaginator(attackClient(t, addr, new(illness)), &dynamodb.ScanInput{TableName: aws.String(attackedEffects), ConsistentRead: aws.Bool(true)})
			for pages.HasMorePages() {
				page := must.Get(pages.NextPage(t.Context()))(t)
				for _, item := range page.Items {
					n := must.Get(strconv.Atoi(item["n"].(*ddbtypes.AttributeValueMemberN).Value))(t)
					counts[item["id"].(*ddbtypes.AttributeValueMemberS).Value] = n
				}
			}
			return counts
		},
	}
}

// envDefect is the environment variable with what the store under attack does wrong.
const envDefect = "KILLTEST_DEFECT"

// The attack must be able to fail. SOAK=1 tries every defect.
func TestAttackSeesDefects(t *testing.T) {
	t.Parallel()
	tests := []struct{ attack, defect, seen string }{
		{"store", givesOneFence, "has fence 7"},
		{"processes", forgetsCompletes, "started after the event was done"},
		{"processes", grantsTooMuch, "before the end of run"},
		{"processes", completesForAll, "had taken the event over"},
		{"processes", completesLater, "started after the event was done"},
	}
	if os.Getenv("SOAK") == "" {
		tests = tests[:2]
	}
	for _, tt := range tests {
		t.Run(tt.attack+" "+tt.defect, func(t *testing.T) {
			t.Parallel()
			var out []byte
			for range 10 { // what happens to hosts and their network is drawn
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAttackInMemory$/^"+tt.attack+"$")
				cmd.Env = append(os.Environ(), envDefect+"="+tt.defect, "SOAK=")
				var err error
				if out, err = cmd.CombinedOutput(); err != nil && strings.Contains(string(out), tt.seen) {
					return
				}
			}
			t.Errorf("not seen: %q:\n%s", tt.seen, out)
		})
	}
}

const (
	forgetsCompletes = "forgets completes"
	givesOneFence    = "gives all owners one fence"
	grantsTooMuch    = "says that leases last longer than they do"
	completesForAll  = "says that an owner completed which it refused"
	completesLater   = "completes when it has answered"
)

// defective is a store with a defect; "": none.
type defective struct {
	*dynamostore.Store
	defect string
}

func (s *defective) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	g, err := s.Store.Acquire(ctx, c)
	switch s.defect {
	case givesOneFence:
		g.Lease.Fence = 7
	case grantsTooMuch:
		g.Lease.Until = g.Lease.Until.Add(time.Minute)
	}
	return g, err
}

func (s *defective) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	switch s.defect {
	case forgetsCompletes:
		return nil
	case completesLater:
		time.AfterFunc(50*time.Millisecond, func() { _ = s.Store.Complete(context.WithoutCancel(ctx), l, r) }) // unless the process dies
		return nil
	}
	err := s.Store.Complete(ctx, l, r)
	if s.defect == completesForAll && errors.Is(err, sqsonce.ErrLeaseLost) {
		return nil
	}
	return err
}

// illness is what the service answers at present to some of the requests; nil: nothing of its own.
type illness struct{ answers atomic.Pointer[[]refusal] }

// refusal is an answer.
type refusal struct {
	status     int
	code, text string
	reads      bool // also to reads
}

func (i *illness) faults() []attack.Fault {
	fault := func(name string, answers ...refusal) attack.Fault {
		return attack.Fault{Name: name, Begin: func(*testing.T) (end func()) {
			i.answers.Store(&answers)
			return func() { i.answers.Store(nil) }
		}}
	}
	var unlisted []refusal
	for n, r := range testserver.Refusals(100) {
		unlisted = append(unlisted, refusal{400 + n%2*100, r.Code + "Exception", r.Text, true})
	}
	return []attack.Fault{
		fault("login refused", refusal{400, "UnrecognizedClientException", "The security token is invalid.", true}, refusal{400, "ExpiredTokenException", "expired", true}),
		fault("throttled", refusal{400, "ThrottlingException", "Rate exceeded", true}, refusal{400, "ProvisionedThroughputExceededException", "slow down", true}),
		fault("read-only", refusal{400, "AccessDeniedException", "not authorized to write", false}),
		fault("unlisted codes", unlisted...),
	}
}

// among answers half of the requests of a fault that has several answers, and every request otherwise.
func (i *illness) among(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		all := i.answers.Load()
		if all == nil || len(*all) > 1 && rand.IntN(2) == 0 {
			return next.RoundTrip(r)
		}
		a := (*all)[rand.IntN(len(*all))]
		if _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); !a.reads && (op == "GetItem" || op == "DescribeTable") {
			return next.RoundTrip(r)
		}
		body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, a.code, a.text)
		return &http.Response{
			StatusCode: a.status, Body: io.NopCloser(strings.NewReader(body)), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"X-Amzn-Requestid": {"ill"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
		}, nil
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func attackClient(t *testing.T, addr string, ill *illness) *dynamodb.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + addr), HTTPClient: &http.Client{Transport: ill.among(transport)},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
}
