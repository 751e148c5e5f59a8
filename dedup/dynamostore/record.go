package dynamostore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
)

// TTLAttribute is the table's TTL attribute. It holds the end of a record's retention in seconds of the epoch.
const TTLAttribute = "expiration"

// The other attributes of a record, but for those that a complete writes: see result.go. Those marked P have the names and the meanings
// that Powertools for AWS Lambda gives them.
const (
	attrID           = "id"                     // P: S, the key
	attrStatus       = "status"                 // P: S, INPROGRESS or COMPLETED
	attrUntil        = "in_progress_expiration" // P: N, end of the lease in ms; 0: released
	attrOwner        = "owner"                  // S, the delivery attempt that holds or held the record
	attrFence        = "fence"                  // N, grows with every owner
	attrReceiveCount = "receive_count"          // N, receive count of the last acquire
)

const (
	inProgress = "INPROGRESS"
	completed  = "COMPLETED"
)

// The values of the status, shared by all requests.
var inProgressValue, completedValue = text(inProgress), text(completed)

// maxKey is DynamoDB's longest partition key, in bytes.
const maxKey = 2048

// record is a decoded item. A number that is missing is nil: DynamoDB's conditions on it are false.
type record struct {
	status, owner, tx        string
	until, expiration, fence *int64
	receiveCount             int64
	kept                     dedup.Record // the result and the texts
}

func decode(item map[string]ddbtypes.AttributeValue) (record, error) {
	d := decoder{item: item}
	r := record{
		status:       d.text(attrStatus),
		owner:        d.text(attrOwner),
		until:        d.number(attrUntil),
		expiration:   d.number(TTLAttribute),
		fence:        d.number(attrFence),
		receiveCount: valueOf(d.number(attrReceiveCount)),
	}
	for _, a := range completeAttributes {
		a.decode(&d, a.name, &r)
	}
	if d.err == nil && r.status != inProgress && r.status != completed {
		d.err = fmt.Errorf("%w: status is %q", dedup.ErrRecord, r.status)
	}
	return r, d.err
}

// decoder keeps the error of the first attribute that has the wrong type.
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
		d.err = fmt.Errorf("%w: attribute %s is not %s", dedup.ErrRecord, name, want)
	}
}

func text(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

func number(n int64) ddbtypes.AttributeValue {
	return &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// valueOf returns 0 for a number that is missing.
func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// recordState is the meaning of a record for an acquire that it refused.
type recordState int

const (
	free     recordState = iota // no live lease: the acquire was refused by the fence alone, or by time clauses that were off
	ours                        // this owner has the lease: an earlier copy of the acquire was written
	released                    // this owner has released the record, and does not get it again
	live                        // another owner's lease may be live
	crashed                     // another owner's lease ended without a release, and such a record is not taken over
	done                        // completed, and within its retention
)

// read returns the state of a record that refused an acquire of owner. now is the taker's clock in milliseconds. Every
// comparison is the condition's own: within the takeover margin a record is live, and never neither live nor free.
func (r record) read(owner string, now int64, noTakeover bool) recordState {
	switch {
	case r.status == completed && r.retentionOver(now):
		return free
	case r.status == completed:
		return done
	case r.owner == owner && r.until != nil && *r.until > 0:
		return ours
	case r.owner == owner:
		return released
	case noTakeover && r.until != nil && *r.until == 0:
		return free // that condition compares the lease's end with zero, not with the clock
	case !r.leaseOver(now):
		return live
	case noTakeover && r.until != nil:
		return crashed
	default:
		return free
	}
}

// leaseOver reports whether the lease of a record in progress has ended. Without an end the lease lasts as long as the
// retention.
func (r record) leaseOver(now int64) bool {
	if r.until == nil {
		return r.retentionOver(now)
	}
	return *r.until < now
}

// retentionOver reports whether the retention has ended. TTL deletes the record some time after that.
func (r record) retentionOver(now int64) bool { return r.expiration != nil && *r.expiration < now/1000 }

// retention is the end of retention that the owner of the lease has given the record with its last write.
func (r record) retention(l dedup.Lease) int64 {
	return retainUntil(valueOf(r.fence), l.Retention, valueOf(r.until))
}

// completedByOthers reports whether a program that does not check ownership has completed the record under the lease's
// owner. Powertools changes neither owner, fence nor lease end, and sets the end of retention, which a complete of this
// package leaves as it is. It is not recognised if both ends are in the same second, nor after a release.
func (r record) completedByOthers(l dedup.Lease) bool {
	return r.status == completed && r.owner == l.Owner && valueOf(r.until) > 0 && valueOf(r.expiration) != r.retention(l)
}

// encodeData stores a result as a string, as Powertools stores its JSON, and as binary if it is not valid UTF-8.
func encodeData(b []byte) ddbtypes.AttributeValue {
	if utf8.Valid(b) {
		return text(string(b))
	}
	return &ddbtypes.AttributeValueMemberB{Value: b}
}

// decodeData returns a stored result. Powertools for TypeScript stores the value itself and not its JSON: decodeData
// encodes it.
func decodeData(v ddbtypes.AttributeValue) ([]byte, error) {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return []byte(v.Value), nil
	case *ddbtypes.AttributeValueMemberB:
		return v.Value, nil
	}
	plain, err := plainValue(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}

func plainValue(v ddbtypes.AttributeValue) (any, error) {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberN:
		return json.Number(v.Value), nil
	case *ddbtypes.AttributeValueMemberBOOL:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberNULL:
		return nil, nil
	case *ddbtypes.AttributeValueMemberB:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberSS:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberBS:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberNS:
		ns := make([]json.Number, len(v.Value))
		for i, n := range v.Value {
			ns[i] = json.Number(n)
		}
		return ns, nil
	case *ddbtypes.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, e := range v.Value {
			var err error
			if list[i], err = plainValue(e); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *ddbtypes.AttributeValueMemberM:
		m := make(map[string]any, len(v.Value))
		for k, e := range v.Value {
			var err error
			if m[k], err = plainValue(e); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return nil, fmt.Errorf("dynamostore: attribute value of type %T", v)
}
