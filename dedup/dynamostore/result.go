package dynamostore

import (
	"slices"
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/field"
)

// outcome is what a complete writes into a record.
type outcome struct {
	lease  dedup.Lease
	result dedup.Result
	tx     string // token of an inbox's transaction
}

// completeAttribute is an attribute that a complete writes besides the status. encode returns nil where there is nothing to write.
// An acquire and a reopen remove those of the result.
type completeAttribute struct {
	name     string
	ofResult bool
	encode   func(outcome) ddbtypes.AttributeValue
	decode   func(d *decoder, name string, r *record)
}

var completeAttributes = slices.Concat(
	[]completeAttribute{{
		"data", true, // P: the result
		func(o outcome) ddbtypes.AttributeValue {
			if o.result.Data == nil {
				return nil
			}
			return encodeData(o.result.Data)
		},
		func(d *decoder, name string, r *record) {
			if r.status == completed {
				r.kept.Result.Data = d.data(name)
			}
		},
	}},
	textAttributes(),
	[]completeAttribute{{
		"tx", true, // S, token of the transaction that completed the record
		func(o outcome) ddbtypes.AttributeValue {
			if o.tx == "" {
				return nil
			}
			return text(o.tx)
		},
		func(d *decoder, name string, r *record) { r.tx = d.text(name) },
	}},
)

// textAttributes are those of field.Texts. All are S.
func textAttributes() (all []completeAttribute) {
	for _, f := range field.Texts {
		all = append(all, completeAttribute{
			f.Name, f.OfResult,
			func(o outcome) ddbtypes.AttributeValue {
				if value, given := f.Of(o.result); given {
					return text(value)
				}
				return nil
			},
			func(d *decoder, name string, r *record) { f.Set(&r.kept, d.text(name)) },
		})
	}
	return all
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
