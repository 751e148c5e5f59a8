//go:build aws

package suites

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxtest"
)

func TestOutbox(t *testing.T) {
	client := dynamoClient(t)
	open := func(t *testing.T, table string) openBox {
		box := must.Get(dynamooutbox.New(client, table, "orders", "orders"))(t)
		return openBox{box, table}
	}
	t.Run("conformance", func(t *testing.T) {
		outboxtest.Run(t, outboxtest.Harness{
			New: func(t *testing.T) (outbox.Store, func(*testing.T, ...fifo.Event)) {
				box := open(t, outboxTable(t, client))
				return box, committer(client, box.Outbox)
			},
			Reopen:   func(t *testing.T, s outbox.Store) outbox.Store { return open(t, s.(openBox).table) },
			NoClaims: true,
			RealTime: true,
		})
	})
	t.Run("an event before one that is there", func(t *testing.T) { halfApplied(t, client, outboxTable(t, client)) })
}

// openBox is an outbox with its table.
type openBox struct {
	*dynamooutbox.Outbox
	table string
}

// halfApplied looks for what the order on DynamoDB rests on: a transaction that is decided may reach its items one by one, so that
// a later event of a group is there and an earlier one is not; TransactGetItems of the earlier one is then cancelled, and never
// says that there is none. AWS documents it of items, and not by name of one that a Put makes.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
func halfApplied(t *testing.T, client *dynamodb.Client, table string) {
	const events, group, readers = 1_000, "orders#g", 4
	key := func(pk string, seq int64) map[string]ddbtypes.AttributeValue {
		return map[string]ddbtypes.AttributeValue{
			"pk": &ddbtypes.AttributeValueMemberS{Value: pk}, "seq": &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(seq, 10)},
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var committed, gaps, cancelled, settled atomic.Int64
	failed := make(chan error, readers)
	for range readers {
		go func() {
			failed <- func() error {
				for ctx.Err() == nil {
					from := max(1, committed.Load()-5)
					out, err := client.Query(ctx, &dynamodb.QueryInput{
						TableName: &table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk AND seq >= :from"),
						ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":pk": key(group, 0)["pk"], ":from": key(group, from)["seq"]},
					})
					if err != nil {
						return err
					}
					next := from
					for _, item := range out.Items {
						seq, err := strconv.ParseInt(item["seq"].(*ddbtypes.AttributeValueMemberN).Value, 10, 64)
						if err != nil {
							return err
						}
						for ; next < seq; next++ {
							gaps.Add(1)
							one, err := client.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []ddbtypes.TransactGetItem{
								{Get: &ddbtypes.Get{TableName: &table, Key: key(group, next)}},
							}})
							_, conflict := errors.AsType[*ddbtypes.TransactionCanceledException](err)
							switch {
							case conflict:
								cancelled.Add(1)
							case err != nil:
								return err
							case one.Responses[0].Item == nil:
								return fmt.Errorf("event %d is there, and TransactGetItems says that %d is not: the order of an outbox is not safe", seq, next)
							default:
								settled.Add(1)
							}
						}
						next = seq + 1
					}
				}
				return nil
			}()
		}()
	}
	for n := int64(1); n <= events && t.Context().Err() == nil; {
		// The version in a partition of its own, as an aggregate has it: the two items are on two nodes.
		_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
			{Put: &ddbtypes.Put{TableName: &table, Item: withVersion(key("version", 1), n), ConditionExpression: aws.String("attribute_not_exists(pk) OR version = :old"),
				ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":old": &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n-1, 10)}}}},
			{Put: &ddbtypes.Put{TableName: &table, Item: key(group, n), ConditionExpression: aws.String("attribute_not_exists(pk)")}},
		}})
		if _, conflict := errors.AsType[*ddbtypes.TransactionCanceledException](err); conflict {
			continue // with the readers; the version says whether it was made
		}
		if err != nil {
			t.Fatal(err)
		}
		committed.Store(n)
		n++
	}
	stop()
	for range readers {
		if err := <-failed; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	t.Logf("%d transactions; %d times an event was there before an earlier one: TransactGetItems of that was cancelled %d times, and found it %d times",
		events, gaps.Load(), cancelled.Load(), settled.Load())
}

func withVersion(item map[string]ddbtypes.AttributeValue, n int64) map[string]ddbtypes.AttributeValue {
	item["version"] = &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	return item
}

// committer commits events with the next numbers of their groups, in one transaction.
func committer(client *dynamodb.Client, box *dynamooutbox.Outbox) func(*testing.T, ...fifo.Event) {
	last := map[string]int64{}
	return func(t *testing.T, es ...fifo.Event) {
		t.Helper()
		in := &dynamodb.TransactWriteItemsInput{}
		for _, e := range es {
			last[e.Group]++
			put := must.Get(box.Put(e, last[e.Group]))(t)
			in.TransactItems = append(in.TransactItems, ddbtypes.TransactWriteItem{Put: put})
		}
		must.Get(client.TransactWriteItems(t.Context(), in))(t)
	}
}

func outboxTable(t *testing.T, client *dynamodb.Client) string {
	t.Helper()
	table := name("outbox")
	must.Do(t, dynamooutbox.CreateTable(t.Context(), client, table))
	t.Cleanup(func() {
		// An error is of no use: what is left is deleted at the end of the run.
		_, _ = client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table})
	})
	return table
}
