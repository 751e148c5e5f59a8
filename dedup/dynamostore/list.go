package dynamostore

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
	"github.com/sqsonce/sqsonce/internal/host"
)

// List implements [dedup.Lister] by a Scan with eventually consistent reads, so a record may be as it was some time before.
// The Scan always reads the whole table, and consumes half a read unit for each 4 KB of it. A request reads 1 MB, and the
// next one waits until ListOptions.ReadUnits allow it. [Store.Stats] counts the consumed units. The order is DynamoDB's
// own.
//
// List needs the permission dynamodb:Scan. Other methods don't need it, and a worker's role doesn't have it.
func (s *Store) List(ctx context.Context, optFns ...func(*dedup.ListOptions)) iter.Seq2[dedup.Record, error] {
	return func(yield func(dedup.Record, error) bool) {
		l := operate.NewList(func() time.Time { return s.clock.look().host }, optFns)
		in := s.scanInput(l)
		for {
			start := time.Now()
			var out *dynamodb.ScanOutput
			err := s.retry(ctx, func(ctx context.Context, options func(*dynamodb.Options)) (err error) {
				out, err = s.client.Scan(ctx, in, options)
				return err
			})
			if err != nil {
				yield(dedup.Record{}, s.explain("list", err))
				return
			}
			used := one(out.ConsumedCapacity)
			s.meter.read(used...)
			for _, found := range out.Items {
				if !s.send(found, l, yield) {
					return
				}
			}
			if len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
			if !host.Wait(ctx, time.Until(start.Add(pace(used, l.ReadUnits)))) {
				yield(dedup.Record{}, s.explain("list", context.Cause(ctx)))
				return
			}
		}
	}
}

// pace is how long the reads of a second's units take.
func pace(used []ddbtypes.ConsumedCapacity, unitsPerSecond int) time.Duration {
	if unitsPerSecond < 0 {
		return 0
	}
	return time.Duration(float64(halves(used)) / 2 / float64(unitsPerSecond) * float64(time.Second))
}

func (s *Store) scanInput(l *operate.List) *dynamodb.ScanInput {
	in := &dynamodb.ScanInput{TableName: aws.String(s.table), ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal}
	var filter []string
	v := values{}
	if l.Consumer != "" {
		filter, v[":prefix"] = append(filter, "begins_with(#id, :prefix)"), text(l.Prefix())
	}
	if l.OpenOnly() {
		filter, v[":d"] = append(filter, "#status <> :d"), completedValue
	}
	if len(filter) > 0 {
		e := newExpression("", strings.Join(filter, " AND "))
		in.FilterExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.condition, e.names, v
	}
	if l.After != "" {
		in.ExclusiveStartKey = values{attrID: text(l.After)}
	}
	return in
}

// send yields an item, and reports whether the list goes on.
func (s *Store) send(found item, l *operate.List, yield func(dedup.Record, error) bool) bool {
	d := decoder{item: found}
	key := d.text(attrID) // a string, by the table's key schema
	r, err := decode(found)
	if err != nil {
		return yield(dedup.Record{Lease: dedup.Lease{Key: key}}, s.explain("list", err))
	}
	return l.Send(s.public(key, r), yield)
}
