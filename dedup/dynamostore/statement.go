package dynamostore

import (
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// statement is one write of a batch.
type statement struct {
	key    string
	text   string
	values []ddbtypes.AttributeValue
	// until is the end of the lease that an acquire asks for. It is 0 for a complete, which does not expire.
	until int64
	batch *batch

	done   chan struct{} // closed when result is set
	result statementResult
}

// statementResult is the result of a statement.
type statementResult int

const (
	sentSingly statementResult = iota // not written: its caller has to send the write singly
	withdrawn                         // not sent, since its caller's context ended
	expired                           // not sent, since the lease that it asks for has ended
	written                           // it had its effect
	refused                           // there is such a record already, or the record has another owner
	transient                         // not written, and it may be sent again
	unanswered                        // unknown outcome: it may have been written, or may be written later
	underWay                          // its caller's context ended, and its batch is not answered yet
)

func (st *statement) finish(r statementResult) {
	st.result = r
	close(st.done)
}

// statementTexts are the PartiQL texts for a table. The attribute names are quoted, since several are reserved words.
type statementTexts struct{ insert, update string }

func newStatementTexts(table string) statementTexts {
	names := []string{attrID, attrStatus, attrOwner, attrFence, attrUntil, TTLAttribute, attrReceiveCount}
	return statementTexts{
		insert: `INSERT INTO "` + table + `" VALUE {'` + strings.Join(names, `': ?, '`) + `': ?}`,
		update: `UPDATE "` + table + `"`,
	}
}

// insertOf is the acquire of an event's first delivery. It makes the record that the update would make, and is refused
// if there is one.
func (t statementTexts) insertOf(a acquisition) *statement {
	return &statement{
		key:  a.claim.Key,
		text: t.insert,
		values: []ddbtypes.AttributeValue{
			text(a.claim.Key), text(inProgress), text(a.claim.Owner), number(a.fence), number(a.until),
			number(a.expiration()), number(int64(a.claim.ReceiveCount)),
		},
		until: a.until,
		done:  make(chan struct{}),
	}
}

// completeOf is the complete of a record in progress. One that is completed refuses it, and the update that follows sees by whom.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
func (t statementTexts) completeOf(o outcome) *statement {
	st := &statement{key: o.lease.Key, text: t.update, done: make(chan struct{})}
	for _, a := range o.assignments() {
		st.text += ` SET "` + a.name + `"=?`
		st.values = append(st.values, a.value)
	}
	st.text += ` WHERE "` + attrID + `"=? AND "` + attrOwner + `"=? AND "` + attrStatus + `"=?`
	st.values = append(st.values, text(o.lease.Key), text(o.lease.Owner), text(inProgress))
	return st
}

// resultOf reads a statement's own error. It says nothing about the other statements of the batch.
func resultOf(e *ddbtypes.BatchStatementError) statementResult {
	if e == nil {
		return written
	}
	switch e.Code {
	case ddbtypes.BatchStatementErrorCodeEnumDuplicateItem, ddbtypes.BatchStatementErrorCodeEnumConditionalCheckFailed:
		return refused
	case ddbtypes.BatchStatementErrorCodeEnumThrottlingError, ddbtypes.BatchStatementErrorCodeEnumTransactionConflict,
		ddbtypes.BatchStatementErrorCodeEnumProvisionedThroughputExceeded, ddbtypes.BatchStatementErrorCodeEnumRequestLimitExceeded:
		return transient
	case ddbtypes.BatchStatementErrorCodeEnumAccessDenied, ddbtypes.BatchStatementErrorCodeEnumResourceNotFound,
		ddbtypes.BatchStatementErrorCodeEnumValidationError, ddbtypes.BatchStatementErrorCodeEnumItemCollectionSizeLimitExceeded:
		return sentSingly // refused before it was executed: the single request returns the reason, or succeeds
	default:
		return unanswered // InternalServerError, and codes that DynamoDB may add
	}
}
