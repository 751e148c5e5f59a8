package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
)

// Entry is a committed event that is still in its outbox.
type Entry struct {
	fifo.Event
	// Source is the namespace that the event was written for. A [Relay] with another one does not send it.
	Source string
	// Seq is the event's place in its group. The store made it or was given it, and never uses it again.
	Seq int64
	// Age is how long ago the event was committed, by the store's clock (DynamoDB: the writer's). It may be below zero.
	Age time.Duration
	// Parked says that SQS refused the event for good, and how its group has gone on since.
	// Default: not parked.
	Parked RefusedPolicy
	// Reason is the reason why the event is parked, at most 256 bytes of UTF-8.
	Reason string
}

// Scheduled is an event that is not in the outbox yet, and is added to it when it is due.
type Scheduled struct {
	fifo.Event
	// Source is the namespace that the event was written for.
	Source string
	// Due is when the event is due, by the store's clock.
	Due time.Time
}

// RefusedPolicy decides how a group goes on when SQS refuses its next event for good.
type RefusedPolicy int

const (
	// OnRefusedHalt stops the group until an operator decides. The relay sends none of its events.
	OnRefusedHalt RefusedPolicy = iota + 1
	// OnRefusedSkip lets the group go on without the event. If the event is sent later, it is out of order.
	OnRefusedSkip
)

// MaxSkipped is how many skipped events of a group a [Store] returns in addition to the others. A group with more of them
// halts.
const MaxSkipped = 100

// Store is one outbox: the committed events of one queue. Each sentence has a case in internal/outboxtest. All methods are safe
// for concurrent use, in any number of processes. They return soon after their context has ended, and have no effect if it
// ended before.
//
// A store may have more methods. One that wraps another store must pass them on, else its scheduled events are never published.
//
//   - Source() string returns the namespace that its events are written for, and [NewRelay] refuses a publisher with another one.
//   - Probes() int64 counts its requests of the kind of [Stats].Probes.
//   - Move(context.Context) (moved int, overdue time.Duration, err error) adds some of the events that are due to the outbox. A
//     sweep calls it until it moves none. overdue is how long the first event that it saw has been due, or 0 if none is due.
type Store interface {
	// Groups returns at most limit groups with events, those after a cursor in an order of the store's own. An empty cursor
	// means the beginning, and next is "" at the end. Groups may miss an event that was just committed and name a group whose
	// events were just deleted. An event that stays is found in the end. A page may be empty before the end.
	Groups(ctx context.Context, after string, limit int) (found []Group, next string, err error)
	// Claim returns those of the groups that aren't claimed, and claims them for a while. It keeps relays from doing the same
	// work and promises no more than that, so a store may return all of them.
	Claim(ctx context.Context, groups []string, lease time.Duration) ([]string, error)
	// Unclaim ends claims of this store early. It never ends the claim of another store.
	Unclaim(ctx context.Context, groups []string) error
	// Read returns the group's events from its first, in the order of their commits: at most limit that are not skipped, halted
	// ones among them, and at most [MaxSkipped] skipped ones. Every event that was committed before the last of them is among
	// them or was deleted after SQS confirmed it. known is the caller's knowledge of the group. If Read returns fewer than
	// limit that are not skipped, without an error, the group had no event behind them when it looked.
	//
	// An error may come together with events, which are then the group's first and may be sent:
	//
	//   - [ErrUnsettled] if more may follow, and Read can't vouch for them at the moment, or not in this call
	//   - [ErrManySkipped] if the next one is skipped and over [MaxSkipped]
	//   - a [*GroupError] with the Seq that matches [ErrBroken] if the next one can't be decoded
	Read(ctx context.Context, group Group, known Known, limit int) ([]Entry, error)
	// Delete removes events that SQS confirmed, of one group or of several. It looks at Group, Seq and ID alone. A missing
	// event isn't an error, and an event that isn't the same one stays. Delete returns those that may still be there, and left
	// is empty if the error is nil. With [ErrDenied] they stay until a person changes a permission.
	Delete(ctx context.Context, es []Entry) (left []Entry, err error)
	// Park marks an event that is there and is not parked. A missing event stays missing, and a parked one keeps its mark.
	// Neither is an error. Park cuts a reason at 256 bytes, between characters.
	Park(ctx context.Context, e Entry, p RefusedPolicy, reason string) error
	// Unpark removes the mark of a parked event, and Discard removes a parked event. They return [ErrNotParked] for an event
	// that is not parked, and [ErrNotFound] for one that is gone or is not the same event.
	Unpark(ctx context.Context, e Entry) error
	Discard(ctx context.Context, e Entry) error
	// Parked returns parked events, the oldest first, at most limit.
	Parked(ctx context.Context, limit int) ([]Entry, error)
}

// Group is a group that a sweep has found, or a doorbell named.
type Group struct {
	Name   string
	Last   int64         // the highest Seq that was seen, or 0 if not known
	Age    time.Duration // of the oldest event of it that was seen, or 0 if not known
	Parked RefusedPolicy // of its first event that was seen
}

// Known is a relay's knowledge of a group in this process.
type Known struct {
	Confirmed int64 // the highest Seq that SQS confirmed to this relay, or 0
	Seen      int64 // the highest Seq that a Read or Groups, which had ended by now, returned, or 0
}

var (
	// ErrUnsettled says that a transaction before the group's first visible event may not be visible yet. Read again later.
	ErrUnsettled = errors.New("outbox: an earlier transaction of the group is not settled")
	// ErrManySkipped says that a group has more than [MaxSkipped] skipped events and waits for an operator.
	ErrManySkipped = fmt.Errorf("outbox: the group has more than %d skipped events", MaxSkipped)
	// ErrNotParked says that Unpark or Discard found an event that is not parked.
	ErrNotParked = errors.New("outbox: the event is not parked")
	// ErrNotFound says that the event is not in the outbox.
	ErrNotFound = errors.New("outbox: no such event")
	// ErrDenied says that the store refuses the operation for good, because a permission is missing or the table doesn't exist.
	// A relay whose delete is refused so stops, because it would publish the same events again and again.
	ErrDenied = errors.New("outbox: the store refuses the operation")
)
