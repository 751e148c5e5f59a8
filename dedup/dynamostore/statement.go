package dynamostore

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// statement is one write of a batch, an INSERT or an UPDATE.
type statement struct {
	key, owner ddbtypes.AttributeValueMemberS
	insert     struct{ fence, until, expiration int64 } // of an acquire; a complete does not expire
	update     []assignment                             // of a complete, after the status
	batch      *batch
	received   int8                       // receive count of an acquire
	completes  bool                       // it is an UPDATE, else an INSERT
	values     [5]ddbtypes.AttributeValue // room for the parameters

	// Set before batch.done is closed:
	result statementResult
	why    error // with transient: DynamoDB's reason
}

// statementResult is the result of a statement.
type statementResult uint8

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
	st.insert.fence, st.insert.until, st.insert.expiration = a.fence, a.until, a.expiration()
	st.received = int8(a.claim.ReceiveCount)
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
	text, values := &texts.complete, st.values[:0]
	if st.completes {
		if len(st.update) > 0 {
			text = aws.String(texts.updateOf(st.update))
		}
		for _, a := range st.update {
			values = append(values, a.value)
		}
		values = append(values, &st.key, &st.owner)
	} else {
		text = &texts.insert[st.received]
		values = append(values, &st.key, &st.owner, same.value(st.insert.fence), same.value(st.insert.until), same.value(st.insert.expiration))
	}
	return ddbtypes.BatchStatementRequest{Statement: text, Parameters: values}
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
