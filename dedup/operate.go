package dedup

import (
	"context"
	"iter"
	"time"
)

// Record is what operators see of an event. Every store of this module is an [Inspector], a [Reopener] and a [Lister], and
// has Delete(ctx, key) error and Check(ctx) error.
type Record struct {
	Lease
	Completed bool
	// Committed says that the handler's writes were committed in one transaction with the record: a second run makes them
	// again. Only dynamostore can tell. The records of a sqlstore.Inbox look like any other.
	Committed bool
	Result    Result
	ExpiresAt time.Time // the end of retention
}

// RecordState is what a record means for the event's next delivery.
type RecordState string

const (
	StateReleased  RecordState = "released"  // free: the next delivery runs the event
	StateRunning   RecordState = "running"   // leased
	StateCrashed   RecordState = "crashed"   // the lease ended without a complete or a release
	StateCompleted RecordState = "completed" // the next delivery is acknowledged without a run
	StateForeign   RecordState = "foreign"   // without an owner: written by a program that does not check ownership
)

// State returns the record's state at now, by the caller's clock. A store on other machines takes over a crashed record a
// little later, because clocks differ.
func (r Record) State(now time.Time) RecordState {
	switch {
	case r.Owner == "":
		return StateForeign
	case r.Completed:
		return StateCompleted
	case r.Until.IsZero():
		return StateReleased
	case now.Before(r.Until):
		return StateRunning
	default:
		return StateCrashed
	}
}

// Inspector is a store whose records can be read.
type Inspector interface {
	// Inspect returns the record of key, or [ErrNotFound]. A released record has a zero Until, and LastError says why it was
	// released.
	Inspect(ctx context.Context, key string) (Record, error)
}

// Reopener is a store whose records an operator can reopen. Package storetest has a case for every sentence.
type Reopener interface {
	Inspector
	// Reopen releases a record that was completed, or whose owner crashed, so that the event's next delivery runs it: a
	// takeover and a release in one write. seen is the record as Inspect or List returned it. The note is its LastError:
	// the first 256 bytes, in whole characters; an empty note leaves none. The result is deleted, a greater fence stored.
	//
	// The record has a new owner: [OperatorPrefix], the operator's name, '/' and 128 random bits. So earlier owners, also one
	// whose handler still runs, get [sqsonce.ErrLeaseLost] from Renew, Complete and Release, and late copies of their requests
	// change nothing. Its retention lasts for [ReopenOptions].Retention from now, or as long as it did before.
	//
	// It returns [ErrChanged], and changes nothing, where the record has another owner or fence than the one that was seen,
	// has been completed since, or is gone. So of two operators one reopens it. It returns an [*InProgressError] while the
	// lease may be live, unless forced. A record that was released is reopened too, which changes its note and owner. A
	// record without an owner is refused: delete it.
	//
	// After an error that is none of these the outcome is unknown: look again. ErrChanged may also say that the reopen was
	// carried out and its answer lost, where a delivery has acquired the record since.
	//
	// A process acknowledges an event that it saw completed for a minute without a look at its record. Whoever sends the
	// event again waits 65 s after the reopen, and looks whether the record is still as the reopen left it.
	Reopen(ctx context.Context, seen Record, note string, optFns ...func(*ReopenOptions)) error
}

// OperatorPrefix begins the owner of a record that was reopened. A delivery's owner has no '/'.
const OperatorPrefix = "operator/"

// ReopenOptions configure [Reopener].
type ReopenOptions struct {
	// Name is the operator's, for whoever looks at the record: at most 128 bytes of UTF-8 without control characters.
	// Default: none.
	Name string
	// Retention is the consumer's Options.Retention: the record is retained for so long from now, and never less than it
	// was. At least 1 h. Default: 29 days.
	Retention time.Duration
	// Force also reopens a record whose lease is live. Its owner's next write returns [sqsonce.ErrLeaseLost], which ends the
	// context of the handler, and another delivery may run at the same time. Default: false.
	Force bool
}

// Lister is a store whose records can be listed. Package storetest has a case for every sentence.
type Lister interface {
	// List returns each record once (Redis may repeat one), in the order of the store, without a snapshot: what is written
	// meanwhile may be missing, and a record may be older than Inspect returns it. A record whose retention is over may still
	// be there. Records by which a Once asks whether its store works belong to no event, and are not listed.
	//
	// An error together with a key is that of one record, which cannot be read, and the list goes on. One without a key ends
	// the list.
	List(ctx context.Context, optFns ...func(*ListOptions)) iter.Seq2[Record, error]
}

// ListOptions configure [Lister].
type ListOptions struct {
	// Consumer is whose records are listed. Default: everyone's.
	Consumer string
	// States are those of the records that are listed, by the caller's clock. Default: all.
	States []RecordState
	// After is the key of the last record of an earlier list with the same options, behind which this one goes on. Default:
	// from the start. Redis, which has no order of keys, refuses it with a [*sqsonce.OptionError].
	After string
	// Limit is how many records are listed at most. Default: no limit, as if negative.
	Limit int
	// ReadUnits is how many read units a second the list consumes on average, on DynamoDB only. Default: 100; negative: as
	// many as it can.
	ReadUnits int
}
