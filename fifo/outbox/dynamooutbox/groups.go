package dynamooutbox

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// mostScans is how many pages one call of Groups reads. The events of other outboxes in the table, and groups with more events
// than a page has items, make pages with few groups.
const mostScans = 16

// lastSeq is behind every seq: DynamoDB's numbers have 38 digits.
var lastSeq = &ddbtypes.AttributeValueMemberN{Value: "99999999999999999999999999999999999999"}

// Groups implements [outbox.Store] by an eventually consistent Scan. The table contains only unpublished events, so that it is
// its own index. A page has at most limit items. If it ends inside a group, even one of another outbox, the next one begins
// behind that group, so that a million events behind a halted one cost one page. The cursor is the partition key that the next
// page begins behind. It need not be in the table.
//
// The Age of an event is 0 if its time of writing can't be read.
func (o *Outbox) Groups(ctx context.Context, after string, limit int) (found []outbox.Group, next string, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, "", err
	}
	now := time.Now()
	for range mostScans {
		out, err := o.scan(ctx, after, limit)
		switch {
		case err != nil && len(found) > 0: // the next call meets it; while a table throttles, no call might have all its pages
			return found, after, nil
		case err != nil:
			return nil, "", err
		}
		for _, it := range out.Items {
			pk := stringOf(it[attrPK])
			group, ours := o.groupOf(pk)
			switch n := len(found); {
			case !ours:
				return nil, "", o.explain("Scan", fmt.Errorf("%w: it has the key %.128q", errAnswer, pk))
			case n > 0 && found[n-1].Name == group:
				found[n-1].Last = max(found[n-1].Last, seqOf(it))
			case n == limit:
				return found, o.partition(found[n-1].Name), nil
			default:
				found = append(found, groupAt(group, it, now))
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return found, "", nil
		}
		last := stringOf(out.LastEvaluatedKey[attrPK])
		if last == "" || last == after { // it would never end
			return nil, "", o.explain("Scan", fmt.Errorf("%w: a page behind the key %.128q ends at %.128q", errAnswer, after, last))
		}
		if after = last; len(found) == limit {
			break
		}
	}
	return found, after, nil
}

// scan reads a page of the keys of this outbox's events that are behind a partition.
func (o *Outbox) scan(ctx context.Context, after string, limit int) (*dynamodb.ScanOutput, error) {
	in := &dynamodb.ScanInput{
		TableName:                 aws.String(o.table),
		Limit:                     aws.Int32(int32(min(limit, math.MaxInt32))),
		FilterExpression:          aws.String("begins_with(" + attrPK + ", :prefix)"),
		ProjectionExpression:      aws.String(attrPK + ", " + attrSeq + ", " + attrCreatedAt + ", " + attrParked),
		ExpressionAttributeValues: item{":prefix": text(o.prefix)},
	}
	if after != "" {
		in.ExclusiveStartKey = item{attrPK: text(after), attrSeq: lastSeq}
	}
	out, err := call(ctx, &o.caller, o.client.Scan, in)
	return out, o.explain("Scan", err)
}

// groupAt is a group whose first item that was seen is it.
func groupAt(name string, it item, now time.Time) outbox.Group {
	g := outbox.Group{Name: name, Last: seqOf(it)}
	if ms, err := wholeNumber(it[attrCreatedAt]); err == nil {
		g.Age = now.Sub(time.UnixMilli(ms))
	}
	g.Parked, _ = policyOf(stringOf(it[attrParked])) // of a mark that is none, Read says so
	return g
}

// seqOf is 0 for a number that is no seq: Read says what is wrong with the item.
func seqOf(it item) int64 {
	n, err := wholeNumber(it[attrSeq])
	if err != nil {
		return 0
	}
	return n
}
