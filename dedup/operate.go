package dedup

import (
	"context"
	"iter"
	"time"
)

// Record is the state of an event that operators see. Every store of this module is an [Inspector], a [Reopener], a [Keeper] and
// a [Lister]. It also has Check(ctx) error, and Delete with ctx and the key.
type Record struct {
	Lease
	Completed bool
	// Committed says that the handler's writes were committed in one transaction with the record, so a second run makes them
	// again. Only dynamostore sets it. The records of a sqlstore.Inbox look like any other.
	Committed bool
	Result    Result
	ExpiresAt time.Time // the end of retention
	Note      string    // the operator's, of the last [Reopener] call, or of the complete ([Result])
}

// RecordState is the meaning of a record for the event's next delivery.
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

// Inspector is a store whose records can be read. After a crash [Once] reads with it which event the process had started last.
type Inspector interface {
	// Inspect returns the record of key, or [ErrNotFound]. A released record has a zero Until, and LastError says why it was
	// released.
	Inspect(ctx context.Context, key string) (Record, error)
}

// Reopener is a store whose records an operator can reopen. Package storetest has a case for every sentence.
type Reopener interface {
	Inspector
	// Reopen releases a record that was completed, or whose owner crashed, so that the event's next delivery runs it. It makes
	// a takeover and a release in one write. seen is the record as Inspect or List returned it. The note replaces the record's
	// Note: its first 256 bytes, in whole characters. LastError stays, unless it counts crashes ([Record.Crashes]): these end with
	// the reopen. The result is deleted, and a greater fence is stored.
	//
	// The record has a new owner: operator/, the operator's name, '/' and 128 random bits. So earlier owners get
	// [sqsonce.ErrLeaseLost] from Renew, Complete and Release, even while their handlers run. Late copies of their requests
	// don't change the record. The record is retained for [ReopenOptions].Retention from now, or as long as it was before.
	//
	// Reopen returns [ErrChanged], and leaves the record unchanged, if its owner or fence differs from seen, if it has been
	// completed since, or if it is gone. So of two operators only one reopens it. It returns an [*InProgressError] while the
	// lease may be live, unless forced. A record that was released is reopened too, which changes its note and owner. A record
	// without an owner is refused. Delete it instead.
	//
	// After any other error the outcome is unknown, so look again. ErrChanged may also say that the reopen was carried out and
	// its answer lost, if a delivery has acquired the record since.
	//
	// A process acknowledges an event that it saw completed for a minute without a look at its record, unless the message has
	// the attribute [sqsonce.AttrRedriven]. So give the event's message that attribute, as sqsonce dlq redrive does. Or wait 65 s
	// after the reopen of a completed record before you send it, and check that the record is still as the reopen left it.
	Reopen(ctx context.Context, seen Record, note string, optFns ...func(*ReopenOptions)) error
}

// ReopenOptions configure [Reopener].
type ReopenOptions struct {
	// Name is the operator's name, for later readers of the record.
	// Default: empty. Limits: at most 128 bytes of UTF-8 without control characters.
	Name string
	// Retention is the consumer's Options.Retention. The record is retained for that long from now, and never less than it
	// was.
	// Default: 29 days. Limits: at least 1 h.
	Retention time.Duration
	// Force also reopens a record whose lease is live. Its owner's next write returns [sqsonce.ErrLeaseLost], which ends the
	// context of the handler, and another delivery may run at the same time.
	// Default: false.
	Force bool
}

// DeleteOptions configure the Delete of a store, which deletes a record.
type DeleteOptions struct {
	// Force also deletes a record whose lease is live. Its owner's next write returns [sqsonce.ErrLeaseLost], and another delivery
	// may run at the same time.
	// Default: false.
	Force bool
}

// Keeper is a store that keeps a small text of an operator under a key of its own, next to the records of events. Package
// control reads such a text. Package storetest has a case for every sentence.
type Keeper interface {
	Inspector
	// Keep stores data under seen.Key for d, by the store's clock, in one write. It returns the record, as Inspect does: it is
	// completed, with data as its result. Its owner is new: operator/, the operator's name, '/' and 128 random bits.
	// seen is the record as Inspect returned it. A Key alone says that Inspect returned [ErrNotFound].
	//
	// Keep returns [ErrChanged], and leaves the record unchanged, if its owner or fence differs from seen, if it is in progress,
	// or if it is gone. So of two operators only one changes it. A record whose d has passed counts as missing. While Inspect still
	// returns it, Keep replaces it for one who has seen it, too.
	//
	// If the answer to a write is lost, Keep repeats the write, and knows its own by the owner. After an error other than
	// ErrChanged the outcome is unknown, so look again. ErrChanged may also say that the write was carried out and its answer
	// lost, if another operator has changed the record since.
	//
	// d is at least 1 s, operator has at most 128 bytes of printable UTF-8, and data at most 4,000 bytes. Other values get a
	// [*sqsonce.OptionError].
	Keep(ctx context.Context, seen Record, operator string, data []byte, d time.Duration) (Record, error)
}

// Lister is a store whose records can be listed. Package storetest has a case for every sentence.
type Lister interface {
	// List returns each record once (Redis may repeat one), in the order of the store. The list is not a snapshot: records
	// that are written meanwhile may be missing, and a record may be older than Inspect returns it. A record whose retention
	// has ended may still be listed. Records by which a Once asks whether its store works don't belong to an event, and are
	// not listed.
	//
	// An error with a key says that the record of that key can't be read, and the list goes on. An error without a key ends
	// the list.
	List(ctx context.Context, optFns ...func(*ListOptions)) iter.Seq2[Record, error]
}

// ListOptions configure [Lister].
type ListOptions struct {
	// Consumer is the name of the consumer whose records are listed.
	// Default: all consumers.
	Consumer string
	// States are the states of the records that are listed, by the caller's clock.
	// Default: all.
	States []RecordState
	// After is the key of the last record of an earlier list with the same options. The list goes on behind it. Redis, which
	// has no order of keys, refuses it with a [*sqsonce.OptionError].
	// Default: from the start.
	After string
	// Limit is the maximum number of records that are listed. A negative value means all records.
	// Default: all records.
	Limit int
	// ReadUnits is how many read units a second the list consumes on average, on DynamoDB only. With a negative value it
	// consumes as many as it can.
	// Default: 100.
	ReadUnits int
}
