package dynamostore

import (
	"strconv"
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// statement is one write of a shared call.
type statement struct {
	key    string
	text   string
	values []ddbtypes.AttributeValue
	// until is the end of the lease that an acquire asks for; 0 for a complete, which is never too late.
	until   int64
	batch   *batch
	answers chan verdict // holds one
}

// verdict is what became of a statement.
type verdict int

const (
	alone     verdict = iota // not written, and to be sent by itself
	left                     // its caller has left, and it was not sent
	late                     // the lease that it asks for was over before it could be sent
	written                  // it had its effect
	refused                  // there is such a record already, or it has another owner
	transient                // not written; it may be sent again
	inDoubt                  // it may have been written, and may yet be
)

// statements are the texts for a table. Attribute names are quoted, since several are reserved words.
type statements struct{ insert, complete string }

func newStatements(table string) statements {
	names := []string{attrID, attrStatus, attrOwner, attrFence, attrUntil, TTLAttribute, attrAttempts}
	return statements{
		insert: `INSERT INTO "` + table + `" VALUE {'` + strings.Join(names, `': ?, '`) + `': ?}`,
		// One SET only. A result or a payload hash goes by UpdateItem.
		complete: `UPDATE "` + table + `" SET "` + attrStatus + `"=? WHERE "` + attrID + `"=? AND "` + attrOwner + `"=?`,
	}
}

// insertion is the acquire of an event's first delivery: the record as the update would make it, and nothing where there
// is one.
func (s *Store) insertion(a acquisition) *statement {
	st := &struct { // one allocation
		statement
		list    [7]ddbtypes.AttributeValue
		texts   [2]ddbtypes.AttributeValueMemberS
		numbers [4]ddbtypes.AttributeValueMemberN
	}{statement: statement{key: a.claim.Key, text: s.group.texts.insert, until: a.until, answers: make(chan verdict, 1)}}
	st.texts[0].Value, st.texts[1].Value = a.claim.Key, a.claim.Owner
	n := &st.numbers
	setNumbers(n[:], a.fence, a.until, a.expiration(), int64(a.claim.Attempt))
	st.list = [...]ddbtypes.AttributeValue{&st.texts[0], inProgressText, &st.texts[1], &n[0], &n[1], &n[2], &n[3]}
	st.values = st.list[:]
	return &st.statement
}

func (s *Store) completionOf(key, owner string) *statement {
	st := &struct {
		statement
		list  [3]ddbtypes.AttributeValue
		texts [2]ddbtypes.AttributeValueMemberS
	}{statement: statement{key: key, text: s.group.texts.complete, answers: make(chan verdict, 1)}}
	st.texts[0].Value, st.texts[1].Value = key, owner
	st.list = [...]ddbtypes.AttributeValue{completedText, &st.texts[0], &st.texts[1]}
	st.values = st.list[:]
	return &st.statement
}

// setNumbers writes all of them into one string.
func setNumbers(to []ddbtypes.AttributeValueMemberN, numbers ...int64) {
	var digits [80]byte
	b, ends := digits[:0], [4]int{}
	for i, n := range numbers {
		b = strconv.AppendInt(b, n, 10)
		ends[i] = len(b)
	}
	all, from := string(b), 0
	for i := range numbers {
		to[i].Value, from = all[from:ends[i]], ends[i]
	}
}

var inProgressText, completedText = text(inProgress), text(completed)

// verdictOf reads a statement's own error. It says nothing about the other statements of the call.
func verdictOf(e *ddbtypes.BatchStatementError) verdict {
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
		ddbtypes.BatchStatementErrorCodeEnumValidationError:
		return alone // refused before it was tried; the single call says why, or succeeds
	default:
		return inDoubt // InternalServerError, and whatever DynamoDB may add
	}
}
