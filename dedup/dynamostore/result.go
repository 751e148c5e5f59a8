package dynamostore

import (
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// outcome is what a complete writes into a record.
type outcome struct {
	lease  dedup.Lease
	result dedup.Result
	tx     string // token of an inbox's transaction
}

// completeAttributes are the attributes that a complete writes besides the status. encode returns nil where there is nothing to
// write. An acquire and a reopen remove those of the result. P: see record.go.
var completeAttributes = []struct {
	name     string
	ofResult bool
	encode   func(outcome) ddbtypes.AttributeValue
	decode   func(d *decoder, name string, r *record)
}{
	{
		"data", true, // P: the result
		func(o outcome) ddbtypes.AttributeValue {
			if o.result.Data == nil {
				return nil
			}
			return encodeData(o.result.Data)
		},
		func(d *decoder, name string, r *record) {
			if r.status == completed {
				r.result.Data = d.data(name)
			}
		},
	},
	{
		"validation", true, // P: S, hash of the payload
		func(o outcome) ddbtypes.AttributeValue { return textOrNone(o.result.Validation) },
		func(d *decoder, name string, r *record) { r.result.Validation = d.text(name) },
	},
	{
		"tx", true, // S, token of the transaction that completed the record
		func(o outcome) ddbtypes.AttributeValue { return textOrNone(o.tx) },
		func(d *decoder, name string, r *record) { r.tx = d.text(name) },
	},
	{
		"error", false, // S, the last failure, or why the event was skipped
		func(o outcome) ddbtypes.AttributeValue {
			if o.result.Skipped == nil {
				return nil
			}
			return text(cut.Cause(o.result.Skipped))
		},
		func(d *decoder, name string, r *record) { r.lastError = d.text(name) },
	},
	{
		"note", false, // S, an operator's, of the last reopen or complete
		func(o outcome) ddbtypes.AttributeValue { return textOrNone(cut.Text(o.result.Note, cut.MostCause)) },
		func(d *decoder, name string, r *record) { r.note = d.text(name) },
	},
}

// removeResult is the end of an update after which the record has no result.
var removeResult = remove(func(_ string, ofResult bool) bool { return ofResult })

// removeAllBut is the end of an update after which the record has one of these attributes.
func removeAllBut(kept string) string {
	return remove(func(name string, _ bool) bool { return name != kept })
}

func remove(which func(name string, ofResult bool) bool) string {
	var names []string
	for _, a := range completeAttributes {
		if which(a.name, a.ofResult) {
			names = append(names, "#"+a.name)
		}
	}
	return " REMOVE " + strings.Join(names, ", ")
}

// assignment is one of a completion.
type assignment struct {
	name  string
	value ddbtypes.AttributeValue
}

// statusAlone are the assignments of a completion without a result, shared by all of them.
var statusAlone = []assignment{{attrStatus, completedValue}}

func (o outcome) assignments() []assignment {
	all := statusAlone[:1:1] // append copies it
	for _, a := range completeAttributes {
		if v := a.encode(o); v != nil {
			all = append(all, assignment{a.name, v})
		}
	}
	return all
}

// completion is the update that completes a record. It adds its values to those of the condition, which doesn't depend on time. A
// holder whose lease has ended may still complete if no other owner took over.
func (o outcome) completion(condition string, v values) expression {
	v[":me"] = text(o.lease.Owner)
	var sets []string
	for _, a := range o.assignments() {
		sets = append(sets, "#"+a.name+"=:"+a.name)
		v[":"+a.name] = a.value
	}
	return newExpression("SET "+strings.Join(sets, ", "), condition)
}

func textOrNone(s string) ddbtypes.AttributeValue {
	if s == "" {
		return nil
	}
	return text(s)
}
