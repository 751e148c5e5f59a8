package dedup

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Verdict is a store's answer to an acquire. The zero value is not an answer.
type Verdict int

const (
	VerdictGranted    Verdict = iota + 1 // the claim's owner has the record: Grant.Lease
	VerdictCompleted                     // the event was completed before: Grant.Result
	VerdictInProgress                    // another owner's lease may be live: Grant.Until
	VerdictCrashed                       // another owner's lease ended without a release, and the claim has NoTakeover
	VerdictLost                          // the claim's owner has released the key or lost it
)

var verdictNames = [...]string{
	VerdictGranted: "granted", VerdictCompleted: "completed", VerdictInProgress: "in_progress", VerdictCrashed: "crashed", VerdictLost: "lease_lost",
}

// String returns the verdict's name, such as "granted".
func (v Verdict) String() string {
	if v.known() {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", int(v))
}

func (v Verdict) known() bool { return v >= VerdictGranted && v <= VerdictLost }

// Grant is a store's answer to a [Claim].
type Grant struct {
	Verdict Verdict
	// Lease is the owner's lease, for VerdictGranted.
	Lease Lease
	// Result is the result of the completed record, for VerdictCompleted.
	Result Result
	// Until is when another acquire makes sense, in the caller's clock, for VerdictInProgress.
	Until time.Time
	// Foreign says that the record was written by a program that does not check ownership, such as Powertools for AWS
	// Lambda. Such a program updates and deletes records without a condition.
	Foreign bool
}

// checkGrant returns the error of an acquire. An answer that breaks the contract of [Store] is an error too: a handler must
// not run because of it. cause is why the acquire's context has ended, which the store's error may hold.
func checkGrant(c Claim, g Grant, err, cause error) error {
	switch {
	case err == nil && g.Verdict.known() && (g.Verdict != VerdictCrashed || c.NoTakeover):
		return nil
	case err == nil:
		return fmt.Errorf("%w: %w: the store answered %s without an error", sqsonce.ErrMisconfigured, ErrOutcomeUnknown, g.Verdict)
	case isAnswer(err) && !isAnswer(cause):
		return fmt.Errorf("%w: %w: the store returned an error in place of a verdict: %v", sqsonce.ErrMisconfigured, ErrOutcomeUnknown, err)
	}
	return err
}

func isAnswer(err error) bool {
	return errors.Is(err, sqsonce.ErrLeaseLost) || errors.Is(err, sqsonce.ErrInProgress)
}
