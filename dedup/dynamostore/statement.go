package dynamostore

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// statement is one write of a batch, an INSERT or an UPDATE.
type statement struct {
	key, owner ddbtypes.AttributeValueMemberS
	insert     [3]int64     // an INSERT's fence, lease end and end of retention
	received   int          // its receive count
	update     []assignment // of a complete, after the status
	completes  bool         // it is an UPDATE, else an INSERT
	// until is the end of the lease that an acquire asks for. It is 0 for a complete, which does not expire.
	until int64
	batch *batch

	// Set before batch.done is closed:
	result statementResult
	why    error // with transient: DynamoDB's reason
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

// statementTexts are the PartiQL texts for a table. The attribute names are quoted, since several are reserved words. What is the same
// in all statements is in the text: a parameter costs more.
type statementTexts struct {
	insert   [mostReceived + 1]string // by receive count
	update   string
	complete string // of a complete that sets the status alone
}

func newStatementTexts(table string) statementTexts {
	t := statementTexts{update: `UPDATE "` + table + `" SET "` + attrStatus + `"='` + completed + `'`}
	for count := range t.insert {
		t.insert[count] = `INSERT INTO "` + table + `" VALUE {'` + attrID + `':?,'` + attrOwner + `':?,'` + attrFence + `':?,'` + attrUntil + `':?,'` + TTLAttribute + `':?,'` +
			attrStatus + `':'` + inProgress + `','` + attrReceiveCount + `':` + strconv.Itoa(count) + `}`
	}
	t.complete = t.updateOf(nil)
	return t
}

// updateOf is the text of a complete that also sets these attributes.
func (t *statementTexts) updateOf(sets []assignment) string {
	text := t.update
	for _, a := range sets {
		text += ` SET "` + a.name + `"=?`
	}
	return text + ` WHERE "` + attrID + `"=? AND "` + attrOwner + `"=? AND "` + attrStatus + `"='` + inProgress + `'`
}

// numbers are those in the statements of one batch. Most of its statements have the same ones, which are made once.
type numbers map[int64]ddbtypes.AttributeValue

func (all numbers) value(n int64) ddbtypes.AttributeValue {
	v := all[n]
	if v == nil {
		v = number(n)
		all[n] = v
	}
	return v
}

// insertOf is the acquire of an event's first delivery. It makes the record that the update would make, and is refused
// if there is one.
func insertOf(a acquisition) *statement {
	st := newStatement(a.claim.Key, a.claim.Owner)
	st.insert, st.received, st.until = [...]int64{a.fence, a.until, a.expiration()}, a.claim.ReceiveCount, a.until
	return st
}

// completeOf is the complete of a record in progress. One that is completed refuses it, and the update that follows sees by whom.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
func completeOf(o outcome) *statement {
	st := newStatement(o.lease.Key, o.lease.Owner)
	st.completes, st.update = true, o.assignments()[1:]
	return st
}

func newStatement(key, owner string) *statement {
	return &statement{key: ddbtypes.AttributeValueMemberS{Value: key}, owner: ddbtypes.AttributeValueMemberS{Value: owner}}
}

// request is the statement with its parameters in the order of its text.
func (st *statement) request(texts *statementTexts, same numbers) ddbtypes.BatchStatementRequest {
	if !st.completes {
		values := []ddbtypes.AttributeValue{&st.key, &st.owner, nil, nil, nil}
		for i, n := range st.insert {
			values[2+i] = same.value(n)
		}
		return ddbtypes.BatchStatementRequest{Statement: &texts.insert[st.received], Parameters: values}
	}
	text := &texts.complete
	if len(st.update) > 0 {
		text = aws.String(texts.updateOf(st.update))
	}
	values := make([]ddbtypes.AttributeValue, 0, len(st.update)+2)
	for _, a := range st.update {
		values = append(values, a.value)
	}
	return ddbtypes.BatchStatementRequest{Statement: text, Parameters: append(values, &st.key, &st.owner)}
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
