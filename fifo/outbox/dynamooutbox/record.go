package dynamooutbox

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// The attributes of an item.
const (
	attrPK         = "pk"         // S, hash key: outbox, '#', group
	attrSeq        = "seq"        // N, range key
	attrID         = "id"         // S
	attrSource     = "source"     // S
	attrType       = "type"       // S, if the event has one
	attrPayload    = "payload"    // S
	attrAttributes = "attributes" // M of M, if the event has some: see encodeAttributes
	attrTrace      = "trace"      // S, if the event has one
	attrCreatedAt  = "created_at" // N, milliseconds of the epoch, by the writer's clock
	attrVersion    = "v"          // N
	attrParked     = "parked"     // S, HALT or SKIP, if SQS refused the event
	attrError      = "error"      // S, why
	attrParkedAt   = "parked_at"  // N, milliseconds of the epoch
)

// The attributes of an attribute of the event. The value is S, or B for a binary one.
const (
	attrAttrType  = "type"
	attrAttrValue = "value"
)

// itemVersion is the form of an item. The outbox doesn't read an item of another form, because a later version may give it a
// meaning that this one doesn't know.
const itemVersion = 1

var policies = map[outbox.RefusedPolicy]string{outbox.OnRefusedHalt: "HALT", outbox.OnRefusedSkip: "SKIP"}

// policyOf is what the mark of an item means.
func policyOf(mark string) (outbox.RefusedPolicy, bool) {
	for p, name := range policies {
		if name == mark {
			return p, true
		}
	}
	return 0, false
}

type item = map[string]ddbtypes.AttributeValue

func text(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

func number(n int64) ddbtypes.AttributeValue {
	return &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func keyOf(pk string, seq int64) item { return item{attrPK: text(pk), attrSeq: number(seq)} }

// encode returns the item of an event.
func encode(pk string, seq int64, source string, e fifo.Event, now time.Time) item {
	it := keyOf(pk, seq)
	it[attrID], it[attrSource], it[attrPayload] = text(e.ID), text(source), text(e.Body)
	it[attrCreatedAt], it[attrVersion] = number(now.UnixMilli()), number(itemVersion)
	if e.Type != "" {
		it[attrType] = text(e.Type)
	}
	if e.TraceHeader != "" {
		it[attrTrace] = text(e.TraceHeader)
	}
	if len(e.Attributes) > 0 {
		it[attrAttributes] = encodeAttributes(e.Attributes)
	}
	return it
}

func encodeAttributes(attrs map[string]sqsonce.Attribute) ddbtypes.AttributeValue {
	all := make(item, len(attrs))
	for name, a := range attrs {
		value := text(a.String)
		if len(a.Binary) > 0 { // a copy: the caller may change its own before the transaction is sent
			value = &ddbtypes.AttributeValueMemberB{Value: append([]byte(nil), a.Binary...)}
		}
		all[name] = &ddbtypes.AttributeValueMemberM{Value: item{attrAttrType: text(a.Type), attrAttrValue: value}}
	}
	return &ddbtypes.AttributeValueMemberM{Value: all}
}

// itemBytes is the size of an item, as DynamoDB counts it. A number has half a byte for each digit and up to two more: here
// it has its length.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func itemBytes(it item) int {
	n := 0
	for name, v := range it {
		n += len(name)
		switch v := v.(type) {
		case *ddbtypes.AttributeValueMemberS:
			n += len(v.Value)
		case *ddbtypes.AttributeValueMemberN:
			n += len(v.Value)
		case *ddbtypes.AttributeValueMemberB:
			n += len(v.Value)
		case *ddbtypes.AttributeValueMemberM:
			n += 3 + len(v.Value) + itemBytes(v.Value)
		}
	}
	return n
}

// decode returns the entry of an item, without its group. Beside an error it has the Seq, if that can be read.
func decode(it item, now time.Time) (outbox.Entry, error) {
	d := decoder{item: it}
	e := outbox.Entry{Seq: d.number(attrSeq)}
	if d.err == nil && e.Seq < 1 {
		d.fail(attrSeq, "1 or more")
	}
	if v := d.number(attrVersion); d.err == nil && v != itemVersion {
		return e, fmt.Errorf("dynamooutbox: the item has the form %d, this version reads %d: update the relay", v, itemVersion)
	}
	e.ID, e.Source, e.Body = d.text(attrID), d.text(attrSource), d.text(attrPayload)
	e.Age = now.Sub(time.UnixMilli(d.number(attrCreatedAt)))
	e.Type, e.TraceHeader = d.optional(attrType), d.optional(attrTrace)
	e.Attributes = d.attributes()
	if mark := d.optional(attrParked); mark != "" {
		p, ok := policyOf(mark)
		if !ok {
			d.fail(attrParked, "HALT or SKIP")
		}
		e.Parked, e.Reason = p, d.optional(attrError)
	}
	return e, d.err
}

// decoder keeps the error of the first attribute that is not as encode writes it.
type decoder struct {
	item item
	err  error
}

func (d *decoder) fail(name, want string) {
	if d.err == nil {
		d.err = fmt.Errorf("dynamooutbox: attribute %s of the item is not %s", name, want)
	}
}

func (d *decoder) text(name string) string {
	if _, ok := d.item[name]; !ok {
		d.fail(name, "there")
	}
	return d.optional(name)
}

func (d *decoder) optional(name string) string {
	v, ok := d.item[name]
	if !ok {
		return ""
	}
	s, ok := v.(*ddbtypes.AttributeValueMemberS)
	if !ok || s == nil {
		d.fail(name, "a string")
		return ""
	}
	return s.Value
}

func (d *decoder) number(name string) int64 {
	n, err := wholeNumber(d.item[name])
	if err != nil {
		d.fail(name, "a whole number")
		return 0
	}
	return n
}

func wholeNumber(v ddbtypes.AttributeValue) (int64, error) {
	n, ok := v.(*ddbtypes.AttributeValueMemberN)
	if !ok || n == nil {
		return 0, errors.New("not a number")
	}
	return strconv.ParseInt(n.Value, 10, 64)
}

func stringOf(v ddbtypes.AttributeValue) string {
	if s, ok := v.(*ddbtypes.AttributeValueMemberS); ok && s != nil {
		return s.Value
	}
	return ""
}

func (d *decoder) attributes() map[string]sqsonce.Attribute {
	v, ok := d.item[attrAttributes]
	if !ok {
		return nil
	}
	all, ok := v.(*ddbtypes.AttributeValueMemberM)
	if !ok || all == nil {
		d.fail(attrAttributes, "a map")
		return nil
	}
	attrs := make(map[string]sqsonce.Attribute, len(all.Value))
	for name, v := range all.Value {
		m, ok := v.(*ddbtypes.AttributeValueMemberM)
		if !ok || m == nil {
			d.fail(attrAttributes, "a map of maps")
			return nil
		}
		one := decoder{item: m.Value}
		a := sqsonce.Attribute{Type: one.text(attrAttrType)}
		if b, ok := m.Value[attrAttrValue].(*ddbtypes.AttributeValueMemberB); ok && b != nil {
			a.Binary = b.Value
		} else {
			a.String = one.text(attrAttrValue)
		}
		if one.err != nil {
			d.fail(attrAttributes, "a map of types and values")
			return nil
		}
		attrs[name] = a
	}
	return attrs
}
