package dynamostore

import (
	"errors"
	"fmt"
	"strconv"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
)

// TTLAttribute holds the end of a record's retention in seconds of the epoch: the table's TTL attribute.
const TTLAttribute = "expiration"

// The other attributes of a record. Those marked P have the names and meanings that Powertools for AWS Lambda gives them.
const (
	attrID         = "id"                     // P: S, the key
	attrStatus     = "status"                 // P: S, INPROGRESS or COMPLETED
	attrUntil      = "in_progress_expiration" // P: N, end of the lease in ms; 0: released
	attrData       = "data"                   // P: the result
	attrValidation = "validation"             // P: S, hash of the payload
	attrOwner      = "owner"                  // S, the delivery attempt that holds or held the record
	attrFence      = "fence"                  // N, grows with every owner
	attrAttempts   = "attempts"               // N, receive count of the last acquire
	attrError      = "error"                  // S, what the last release kept
	attrTx         = "tx"                     // S, token of the transaction that completed the record
)

const (
	inProgress = "INPROGRESS"
	completed  = "COMPLETED"
)

// MaxKey is DynamoDB's longest partition key, in bytes.
const MaxKey = 2048

// ErrRecord says that an item of the table is no record that the store or Powertools would write. Nothing is done with
// such an item.
var ErrRecord = errors.New("dynamostore: item is not a record")

// record is an item, decoded. A number that is not there is nil: conditions on it are false in DynamoDB.
type record struct {
	status, owner, lastError, tx string
	until, expiration, fence     *int64
	attempts                     int64
	result                       dedup.Result
}

func decode(item map[string]ddbtypes.AttributeValue) (record, error) {
	d := decoder{item: item}
	r := record{
		status:     d.text(attrStatus),
		owner:      d.text(attrOwner),
		lastError:  d.text(attrError),
		tx:         d.text(attrTx),
		until:      d.number(attrUntil),
		expiration: d.number(TTLAttribute),
		fence:      d.number(attrFence),
		result:     dedup.Result{Validation: d.text(attrValidation)},
	}
	if n := d.number(attrAttempts); n != nil {
		r.attempts = *n
	}
	if r.status == completed {
		r.result.Data = d.data(attrData)
	}
	if d.err == nil && r.status != inProgress && r.status != completed {
		d.err = fmt.Errorf("%w: status is %q", ErrRecord, r.status)
	}
	return r, d.err
}

// decoder remembers the first attribute of the wrong type.
type decoder struct {
	item map[string]ddbtypes.AttributeValue
	err  error
}

func (d *decoder) text(name string) string {
	switch v := d.item[name].(type) {
	case nil, *ddbtypes.AttributeValueMemberNULL:
		return ""
	case *ddbtypes.AttributeValueMemberS:
		return v.Value
	default:
		d.fail(name, "a string")
		return ""
	}
}

func (d *decoder) number(name string) *int64 {
	switch v := d.item[name].(type) {
	case nil:
		return nil
	case *ddbtypes.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil {
			d.fail(name, "a whole number")
			return nil
		}
		return &n
	default:
		d.fail(name, "a number")
		return nil
	}
}

func (d *decoder) data(name string) []byte {
	if d.item[name] == nil {
		return nil
	}
	b, err := decodeData(d.item[name])
	if err != nil {
		d.fail(name, "a result")
	}
	return b
}

func (d *decoder) fail(name, want string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: attribute %s is not %s", ErrRecord, name, want)
	}
}

func text(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

func number(n int64) ddbtypes.AttributeValue {
	return &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
