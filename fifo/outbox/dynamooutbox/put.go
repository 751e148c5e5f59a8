package dynamooutbox

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
)

// maxItem leaves 10 KB of DynamoDB's 400 KB for the mark of a parked event.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const maxItem = 390 << 10

// Put returns the write of one event, for your TransactWriteItems, or for a dynamostore.Tx.
//
// The same transaction must write the group's version, under the condition that it was seq - 1. That is the aggregate's version
// if each version has an event, else a number that you keep next to it. So seq is 1, 2, 3, ... in each group, and the order of
// the commits. Several events of one transaction have consecutive numbers. A gap isn't an error, but the events after it have
// no order against those before it. attribute_not_exists, which the write has, is not enough, because it doesn't see an event
// that was published and deleted.
//
// Put refuses an event that SQS would refuse on any FIFO queue, before the commit, see [fifo.Event.Check]. The error joins one
// [*sqsonce.OptionError] for each reason. The item may have 390 KB, which leaves about 389 KB for body, attributes and ID. Use
// package s3payload for more. If the transaction is cancelled because the condition of this write failed, the number is in use.
func (o *Outbox) Put(e fifo.Event, seq int64) (*ddbtypes.Put, error) {
	var errs []error
	if err := e.Check(o.source); err != nil {
		errs = append(errs, err)
	}
	if seq < 1 {
		errs = append(errs, fieldError("seq", "is %d, must be 1 or more", seq))
	}
	it := encode(o.partition(e.Group), seq, o.source, e, time.Now())
	if n := itemBytes(it); n > maxItem {
		errs = append(errs, fieldError("Event.Body", "makes an item of %d bytes, must be at most %d: put it into S3 with package s3payload", n, maxItem))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &ddbtypes.Put{
		TableName:           aws.String(o.table),
		Item:                it,
		ConditionExpression: aws.String("attribute_not_exists(" + attrPK + ")"),
	}, nil
}
