package dynamostore

import (
	"cmp"
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

const (
	attrData       = "data"       // P: the result
	attrValidation = "validation" // P: S, hash of the payload
	attrTx         = "tx"         // S, token of the transaction that completed the record
)

// resultAttributes are the attributes that a complete writes, and an acquire and a reopen remove. encode returns nil where there
// is nothing to write: a complete without any of them may be part of a batch.
var resultAttributes = []struct {
	name, placeholder string
	encode            func(outcome) ddbtypes.AttributeValue
	decode            func(*decoder, *record)
}{
	{
		attrData, ":r",
		func(o outcome) ddbtypes.AttributeValue {
			if o.result.Data == nil {
				return nil
			}
			return encodeData(o.result.Data)
		},
		func(d *decoder, r *record) {
			if r.status == completed {
				r.result.Data = d.data(attrData)
			}
		},
	},
	{
		attrValidation, ":v",
		func(o outcome) ddbtypes.AttributeValue {
			return textOrNone(cmp.Or(o.result.Validation, o.lease.Validation))
		},
		func(d *decoder, r *record) { r.result.Validation = d.text(attrValidation) },
	},
	{
		attrTx, ":token",
		func(o outcome) ddbtypes.AttributeValue { return textOrNone(o.tx) },
		func(d *decoder, r *record) { r.tx = d.text(attrTx) },
	},
}

// removeResult is the end of an update after which the record has no result.
var removeResult = func() string {
	var names []string
	for _, a := range resultAttributes {
		names = append(names, "#"+a.name)
	}
	return " REMOVE " + strings.Join(names, ", ")
}()

// values are those of a completion.
func (o outcome) values() values {
	v := values{":me": text(o.lease.Owner), ":d": text(completed)}
	for _, a := range resultAttributes {
		if value := a.encode(o); value != nil {
			v[a.placeholder] = value
		}
	}
	if o.result.Skipped != nil {
		v[":e"] = text(cut.Cause(o.result.Skipped))
	}
	if o.result.Note != "" {
		v[":note"] = text(cut.Text(o.result.Note, cut.MostCause))
	}
	return v
}

// isPlain reports whether a completion writes the status alone. It makes no values: that is the completion of most messages.
func (o outcome) isPlain() bool {
	for _, a := range resultAttributes {
		if a.encode(o) != nil {
			return false
		}
	}
	return o.result.Skipped == nil && o.result.Note == ""
}

// completion is the update that completes a record with the values. Its condition doesn't depend on time. A holder whose lease
// has ended may still complete if no other owner took over.
func completion(condition string, v values) expression {
	update := "SET #status=:d"
	for _, a := range resultAttributes {
		if v[a.placeholder] != nil {
			update += ", #" + a.name + "=" + a.placeholder
		}
	}
	if v[":e"] != nil {
		update += ", #error=:e"
	}
	if v[":note"] != nil {
		update += ", #note=:note"
	}
	return newExpression(update, condition)
}

func textOrNone(s string) ddbtypes.AttributeValue {
	if s == "" {
		return nil
	}
	return text(s)
}
