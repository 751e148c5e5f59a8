package dynamostore

import (
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
	return &statement{
		key:  a.claim.Key,
		text: s.group.texts.insert,
		values: []ddbtypes.AttributeValue{
			text(a.claim.Key), text(inProgress), text(a.claim.Owner), number(a.fence), number(a.until),
			number(a.expiration()), number(int64(a.claim.Attempt)),
		},
		until:   a.until,
		answers: make(chan verdict, 1),
	}
}

func (s *Store) completionOf(key, owner string) *statement {
	return &statement{
		key:     key,
		text:    s.group.texts.complete,
		values:  []ddbtypes.AttributeValue{text(completed), text(key), text(owner)},
		answers: make(chan verdict, 1),
	}
}

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
