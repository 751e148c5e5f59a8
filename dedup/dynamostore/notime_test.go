package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// withoutOptions is a wrapper that does not pass the options of a call on.
type withoutOptions struct{ Client }

func (c withoutOptions) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return c.Client.UpdateItem(ctx, in)
}

func (c withoutOptions) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return c.Client.BatchExecuteStatement(ctx, in)
}

func (c withoutOptions) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return c.Client.GetItem(ctx, in)
}

func (c withoutOptions) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return c.Client.DeleteItem(ctx, in)
}

func (c withoutOptions) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return c.Client.DescribeTable(ctx, in)
}

func (c withoutOptions) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return c.Client.DescribeTimeToLive(ctx, in)
}

// stripped is a proxy that does not pass a header of the answers on.
func (b *bed) stripped(header string) Client {
	return b.client(transport(func(r *http.Request) (*http.Response, error) {
		resp, err := b.srv.RoundTrip(r)
		if err == nil {
			resp.Header.Del(header)
		}
		return resp, err
	}))
}

// Without DynamoDB's time no lease is ever over. Check and every acquire say so, whatever the record is, and leave no lease.
func TestAnswersWithoutTime(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*bed) Client{
		"options dropped":    func(b *bed) Client { return withoutOptions{b.client(b.srv)} },
		"without Date":       func(b *bed) Client { return b.stripped("Date") },
		"without request ID": func(b *bed) Client { return b.stripped(requestID) },
	} {
		runBed(t, name, func(t *testing.T, b *bed) {
			live := claimsOf(4)
			live[0].ReceiveCount, live[1].ReceiveCount = 2, 2 // not batched
			other := b.store()
			for i, c := range []dedup.Claim{live[1], live[2]} {
				c.Owner = "other"
				if l := b.acquire(other, c); i == 1 {
					b.complete(other, l)
				}
			}
			s := must.Get(New(client(b), testTable))(t)
			s.peers.enter("peer", s.clock.look().host.Add(lease))
			// An SDK that retries by itself meets its own records.
			b.faults(fault.Rule{Op: batchCall, Nth: 1, Do: fault.LoseReply})
			_, acquired := acquireAll(t.Context(), s, live)
			for i, err := range acquired {
				b.settle(s, live[i], err)
			}
			for what, err := range map[string]error{
				"Check":                          s.Check(t.Context()),
				"Acquire, a new record":          acquired[0],
				"Acquire, a live record":         acquired[1],
				"Acquire, a completed record":    acquired[2],
				"Acquire, a new record, batched": acquired[3],
				"Delete of a live record":        s.Delete(t.Context(), live[1].Key),
			} {
				if kindOf(err) != misconfigured || errors.Is(err, dedup.ErrOutcomeUnknown) != strings.Contains(what, "new") || !strings.HasSuffix(err.Error(), errNoTime.Error()) {
					t.Errorf("%s: got error %v, want ErrMisconfigured, with what to do", what, err)
				}
			}
			for key, r := range b.records() {
				if r[attrOwner] != "other" && r[attrUntil] != "0" {
					t.Errorf("record %s: got %v, want no lease", key, r)
				}
			}
		})
	}
}
