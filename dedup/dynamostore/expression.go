package dynamostore

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expression is an update or a deletion with its condition. Attributes are written #name, since several of their names
// are reserved words; values are bound when it is used.
type expression struct {
	update, condition *string
	names             map[string]string // shared by all requests, never changed
}

func newExpression(update, condition string) expression {
	e := expression{condition: aws.String(condition), names: map[string]string{}}
	if update != "" {
		e.update = aws.String(update)
	}
	for _, field := range strings.FieldsFunc(update+" "+condition, notName) {
		if strings.HasPrefix(field, "#") {
			e.names[field] = field[1:]
		}
	}
	return e
}

func notName(r rune) bool {
	return r != '#' && r != ':' && r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

const (
	acquireUpdate = "SET #status=:p, #owner=:me, #fence=:fence, #in_progress_expiration=:until, #expiration=:exp, #attempts=:n" +
		" REMOVE #data, #validation, #tx"

	// What lets an acquire have the record, clause by clause.

	// No record.
	isNew = "attribute_not_exists(#id)"
	// This very request, which had its effect and lost its reply. Nothing less than all four: with the owner alone a
	// delayed copy of an acquire would re-open the record after a renewal, and without the status after a complete.
	isOwnRetry = "#status=:p AND #owner=:me AND #in_progress_expiration=:until AND #fence=:fence"
	// Another's lease is over by the taker's clock, or released. Its own owner is left out: an acquire that comes again
	// after its release, delayed by the network, is not a new attempt. The fence must grow, so that of two owners within
	// a millisecond, or with clocks apart, the later has the greater.
	isOver     = "#status=:p AND #in_progress_expiration < :now AND " + isAnothers
	isReleased = "#status=:p AND #in_progress_expiration = :zero AND " + isAnothers
	isAnothers = "(attribute_not_exists(#owner) OR #owner<>:me) AND " + fenceGrows
	fenceGrows = "(attribute_not_exists(#fence) OR #fence < :fence)"
	// A holder that writes no lease end: Powertools outside Lambda.
	isOverUndated = "#status=:p AND attribute_not_exists(#in_progress_expiration) AND #expiration < :nows"
	// Completed, retained for long enough, and not yet deleted: DynamoDB's TTL takes its time, up to days.
	isForgotten = "#status=:d AND #expiration < :nows AND " + fenceGrows
)

var (
	acquireExpr = newExpression(acquireUpdate, anyOf(isNew, isOwnRetry, isOver, isOverUndated, isForgotten))
	// Under the policies that leave a crashed holder's record blocked, only a release frees a lease.
	acquireReleasedExpr = newExpression(acquireUpdate, anyOf(isNew, isOwnRetry, isReleased, isOverUndated, isForgotten))

	// BETWEEN 1 AND :until: a delayed renewal neither revives a released lease (end 0) nor shortens a later renewal's.
	renewExpr = newExpression("SET #in_progress_expiration=:until, #expiration=:exp",
		"#owner=:me AND #status=:p AND #in_progress_expiration BETWEEN :one AND :until")

	// The owner stays, as a tombstone: see isAnothers.
	releaseExpr        = newExpression("SET #in_progress_expiration=:zero, #error=:e", isHeldByMe)
	releaseNoCauseExpr = newExpression("SET #in_progress_expiration=:zero REMOVE #error", isHeldByMe)
	// Nothing was run: what the last release kept still stands.
	abandonExpr = newExpression("SET #in_progress_expiration=:zero", isHeldByMe)

	// A record with a live lease is not deleted under its holder's feet.
	deleteExpr = newExpression("", anyOf(isNew, "#status=:d", "#in_progress_expiration < :now",
		"attribute_not_exists(#in_progress_expiration) AND #expiration < :nows"))
)

const (
	isMine     = "#owner=:me"
	isHeldByMe = "#owner=:me AND #status=:p"
	// Not released either: a delayed copy of the transaction must not commit after its own owner's release.
	isCommittable = "#owner=:me AND #status=:p AND #in_progress_expiration > :zero"
)

func anyOf(clauses ...string) string { return "(" + strings.Join(clauses, ") OR (") + ")" }

// completion is the update that completes a record, with or without a result, a payload hash and a transaction's token.
// The time plays no part in it: a holder whose lease is over and whom nobody replaced may still complete.
func completion(condition string, v values) expression {
	update := "SET #status=:d"
	if v[":r"] != nil {
		update += ", #data=:r"
	}
	if v[":v"] != nil {
		update += ", #validation=:v"
	}
	if v[":token"] != nil {
		update += ", #tx=:token"
	}
	return newExpression(update, condition)
}

type values map[string]ddbtypes.AttributeValue
