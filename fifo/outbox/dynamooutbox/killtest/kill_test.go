//go:build unix

// Package killtest_test kills relays and producers of a DynamoDB outbox: see package outboxkill.
package killtest_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/proof/outboxkill"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

const (
	envURL        = "OUTBOXKILL_DYNAMODB"
	outboxTable   = "kill-outbox"
	versionsTable = "kill-versions"
)

func TestMain(m *testing.M) {
	outboxkill.Main(open)
	testserver.Main(m)
}

func TestKillInMemory(t *testing.T) {
	t.Parallel()
	srv := memdynamodb.New(func(o *memdynamodb.Options) {
		o.NoRecord = true
		o.Faults.Rules = []fault.Rule{{Op: "TransactWriteItems", Prob: 0.1, Do: fault.HalfApplied, Delay: 300 * time.Millisecond}}
	})
	t.Cleanup(srv.Close)
	server := httptest.NewServer(srv)
	t.Cleanup(server.Close)
	kill(t, server.URL)
}

func TestKillOnDynoxide(t *testing.T) {
	t.Parallel()
	kill(t, testserver.Dynoxide.Shared(t).URL)
}

// The test must be able to fail.
func TestKillSeesLostEvents(t *testing.T) {
	t.Parallel()
	var out []byte
	for range 10 { // where children die is drawn
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillInMemory$")
		cmd.Env = append(os.Environ(), outboxkill.EnvDefect+"="+outboxkill.EarlyDelete, "KILLS=20")
		var err error
		if out, err = cmd.CombinedOutput(); err != nil && (bytes.Contains(out, []byte("is lost")) || bytes.Contains(out, []byte("comes before event"))) {
			return
		}
	}
	t.Errorf("no event was lost:\n%s", out)
}

func kill(t *testing.T, url string) {
	b := bed{clientOf(url)}
	if err := dynamooutbox.CreateTable(t.Context(), b.ddb, outboxTable); err != nil {
		t.Fatal(err)
	}
	_, err := b.ddb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(versionsTable), BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, table := range []string{outboxTable, versionsTable} {
			_, _ = b.ddb.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
		}
	})
	outboxkill.Run(t, outboxkill.Target{
		Env: []string{envURL + "=" + url},
		Versions: func(t *testing.T) map[string]int {
			versions := map[string]int{}
			for _, it := range b.scan(t, versionsTable) {
				id, n := it["id"].(*ddbtypes.AttributeValueMemberS).Value, it["version"].(*ddbtypes.AttributeValueMemberN).Value
				version, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				versions[id] = version
			}
			return versions
		},
		Left: func(t *testing.T) int { return len(b.scan(t, outboxTable)) },
	})
}

type bed struct{ ddb *dynamodb.Client }

type item = map[string]ddbtypes.AttributeValue

func (b bed) scan(t *testing.T, table string) (all []item) {
	pages := dynamodb.NewScanPaginator(b.ddb, &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

// open is a child's.
func open() (outboxkill.Child, error) {
	ddb := clientOf(os.Getenv(envURL))
	box, err := dynamooutbox.New(ddb, outboxTable, "orders", outboxkill.Source)
	return outboxkill.Child{Store: box, Commit: committer{ddb, box}.commit}, err
}

type committer struct {
	ddb *dynamodb.Client
	box *dynamooutbox.Outbox
}

// commit writes the next version under the condition that it is the next one, and its event.
func (c committer) commit(ctx context.Context, group string, next func(version int) fifo.Event) error {
	key := item{"id": &ddbtypes.AttributeValueMemberS{Value: group}}
	out, err := c.ddb.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(versionsTable), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return err
	}
	version := 0
	if n, ok := out.Item["version"].(*ddbtypes.AttributeValueMemberN); ok {
		if version, err = strconv.Atoi(n.Value); err != nil {
			return err
		}
	}
	put, err := c.box.Put(next(version+1), int64(version+1))
	if err != nil {
		return err
	}
	number := func(n int) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberN{Value: strconv.Itoa(n)} }
	_, err = c.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
		{Update: &ddbtypes.Update{
			TableName: aws.String(versionsTable), Key: key, UpdateExpression: aws.String("SET version = :new"),
			ConditionExpression:       aws.String("version = :old OR attribute_not_exists(id) AND :old = :zero"),
			ExpressionAttributeValues: item{":old": number(version), ":new": number(version + 1), ":zero": number(0)},
		}},
		{Put: put},
	}})
	return err
}

func clientOf(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url), HTTPClient: &http.Client{Transport: http.DefaultTransport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
}
