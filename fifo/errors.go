package fifo

import (
	"errors"
	"fmt"
	"time"
)

// The reasons why an event doesn't have a [Receipt]. Each is wrapped in a [*PublishError], together with its cause. Every error
// matches either ErrNotSent or ErrUnknownOutcome:
//
//	the event                                           matches
//	has a bad field                                     ErrNotSent, ErrRefused, *sqsonce.OptionError
//	found the publisher closed                          ErrNotSent, ErrClosed
//	waited for capacity, and its context ended          ErrNotSent, ErrBufferFull
//	has the ID of another event                         ErrNotSent, ErrRefused, ErrDedupConflict
//	could not be prepared, such as a body for S3        ErrNotSent, the reason; ErrRefused if that is an OptionError
//	is behind one of its group that failed              ErrNotSent, ErrGroupHalted
//	was not in flight when its caller's context ended   ErrNotSent
//	was refused by SQS, and only the event              ErrNotSent, ErrRefused
//	was in a request that was refused                   ErrNotSent
//	never reached SQS                                   ErrNotSent
//	had no certain answer while its window was open     ErrUnknownOutcome
//	had none when its caller's context ended            ErrUnknownOutcome
//	had none when the context of Close ended            ErrUnknownOutcome, ErrClosed
//
// An event that an earlier call may have put into the queue matches ErrUnknownOutcome in place of ErrNotSent. The rows of
// OptionError and ErrDedupConflict are exceptions, because their event isn't the one that may be in the queue. This publisher
// remembers such an event for five minutes. It doesn't know about other publishers. An event that may be in the queue never
// matches ErrRefused.
var (
	// ErrBufferFull says that the context ended while the event waited for capacity, because Options.MaxMessages or
	// Options.MaxBytes is reached.
	ErrBufferFull = errors.New("fifo: not sent: buffer is full (Options.MaxMessages, Options.MaxBytes)")
	// ErrNotSent says that the event is certainly not in the queue. SQS refused it, or it never left this process.
	ErrNotSent = errors.New("fifo: not sent")
	// ErrUnknownOutcome says that the event may or may not be in the queue.
	//
	// You can safely publish it again for as long as SQS recognises the copy. The same publisher continues the window of the
	// first attempt ([PublishError.FirstAttempt]), 285 s as a rule. After that it may put the event into the queue a second
	// time. A consumer that deduplicates events by their IDs then runs its handler once. A request that hasn't reached SQS yet
	// may even put the event behind later events of its group.
	//
	// If the context of Publish ended while the event was in flight, the publisher goes on sending it.
	ErrUnknownOutcome = errors.New("fifo: unknown outcome: the event may be in the queue")
	// ErrGroupHalted says that the event was not sent because an earlier event of its group failed. If it were sent now, it
	// would be delivered before the earlier one. The group doesn't accept events until you have read the results of all failed
	// ones, or called [Publisher.Resume]. Publish the failed ones again in their order, then this one.
	ErrGroupHalted = errors.New("fifo: not sent because an earlier event of the group failed")
	// ErrDedupConflict says that another event has the same ID. It was published less than five minutes ago, with another group,
	// type, body or attributes, or SQS answered with its sequence number. SQS answers success and drops the second event.
	ErrDedupConflict = errors.New("fifo: not sent: another event with the same ID was published less than 5 minutes ago")
	// ErrRefused says, alongside ErrNotSent or ErrDedupConflict, that this event itself is refused for good. If you publish it
	// again as it is, it fails again. The event matches ErrRefused if:
	//
	//   - SQS refused its entry of a request as the sender's fault, and not to throttle
	//   - it has a bad field ([*sqsonce.OptionError])
	//   - another event has its ID
	//   - it was alone in a request that SQS refused for its contents or its size
	//
	// A refusal of the request (access, queue, key, signature) doesn't match, because it isn't about the event. SQS may also
	// give it as the answer for an entry. A refused request that may mean either doesn't match.
	ErrRefused = errors.New("fifo: the event is refused")
	// ErrClosed says that the publisher was closed before it accepted the event, or before the event had a result.
	ErrClosed = errors.New("fifo: publisher is closed")
)

// PublishError is the failure of one event. For a bad event it wraps one [*sqsonce.OptionError] per bad field, joined.
type PublishError struct {
	// Index is the event's position in the call of PublishAll. It is 0 for the other methods.
	Index int
	// EventID and Group are the event's.
	EventID, Group string
	// FirstAttempt is when the first attempt that may have put the event into the queue began. It is set with
	// ErrUnknownOutcome, if there was an attempt. Until 285 s after it SQS recognises a copy, even from another process.
	FirstAttempt time.Time
	// Err is the reason.
	Err error
}

func (e *PublishError) Error() string {
	return fmt.Sprintf("fifo: event %.128q of group %.128q: %v", e.EventID, e.Group, e.Err)
}

func (e *PublishError) Unwrap() error { return e.Err }

// reasonOf returns the Err of a PublishError.
func reasonOf(err error) error {
	if pe, ok := errors.AsType[*PublishError](err); ok {
		return pe.Err
	}
	return err
}

// withIndex returns a PublishError with the event's position in a call of PublishAll. The error is copied, because every
// caller of PublishResult.Get gets the same one.
func withIndex(index int, err error) error {
	pe, ok := errors.AsType[*PublishError](err)
	if !ok {
		return err
	}
	indexed := *pe
	indexed.Index = index
	return &indexed
}

// causedError is one of the errors above, followed by its causes. errors.Is and errors.As find all of them.
type causedError struct{ errs []error }

// because returns reason with its causes. A nil cause and one that is already there are left out.
func because(reason error, causes ...error) error {
	e := &causedError{errs: []error{reason}}
	for _, c := range causes {
		if c != nil && !errors.Is(e, c) {
			e.errs = append(e.errs, c)
		}
	}
	return e
}

func (e *causedError) Error() string {
	s := e.errs[0].Error()
	for _, c := range e.errs[1:] {
		s += ": " + c.Error()
	}
	return s
}

func (e *causedError) Unwrap() []error { return e.errs }

// foreignError is an error of the caller or of its client. It does not match the errors of this package, which say something
// about one event: the cause of a context may be the error of another event, as errgroup's is.
type foreignError struct{ err error }

// foreign returns err as a foreign error. nil stays nil.
func foreign(err error) error {
	if err == nil {
		return nil
	}
	return &foreignError{err}
}

func (e *foreignError) Error() string { return e.err.Error() }

func (e *foreignError) Is(target error) bool {
	for _, own := range []error{ErrBufferFull, ErrNotSent, ErrUnknownOutcome, ErrGroupHalted, ErrDedupConflict, ErrRefused, ErrClosed} {
		if target == own {
			return false
		}
	}
	return errors.Is(e.err, target)
}

func (e *foreignError) As(target any) bool { return errors.As(e.err, target) }

// certainError is a reason that also matches ErrNotSent or ErrUnknownOutcome.
type certainError struct{ reason, outcome error }

// withOutcome returns reason, as an error that matches outcome too.
func withOutcome(outcome, reason error) error {
	if errors.Is(reason, outcome) {
		return reason
	}
	return &certainError{reason: reason, outcome: outcome}
}

func (e *certainError) Error() string {
	if e.outcome == ErrNotSent { // the reason says so
		return e.reason.Error()
	}
	return e.outcome.Error() + ": " + e.reason.Error()
}

func (e *certainError) Unwrap() []error { return []error{e.outcome, e.reason} }

// refusal is a reason that also matches ErrRefused. Its text is that of the reason.
type refusal struct{ error }

func (r refusal) Is(target error) bool { return target == ErrRefused }

func (r refusal) Unwrap() error { return r.error }

// badEvent returns the error of an event that is not accepted since it can never be sent as it is. The same event may have been
// sent before the queue's limit was known, or before a program refused it: it is not refused then.
func (p *Publisher) badEvent(e *entry, err error) *PublishError {
	if p.client != nil { // else nothing is said of the event
		p.mu.Lock()
		p.recent.forget(time.Now()) // as accept does
		if p.outcome(e) == ErrNotSent {
			err = refusal{err}
		}
		p.mu.Unlock()
	}
	return notSent(&e.event, err)
}

// notSent returns the error of an event that is certainly not in the queue.
func notSent(e *Event, reason error) *PublishError {
	return &PublishError{EventID: e.ID, Group: e.Group, Err: withOutcome(ErrNotSent, reason)}
}

// haltedBehind has the text of the earlier event's error only: a later event does not match its ErrUnknownOutcome.
func haltedBehind(earlier string, err, outcome error) error {
	return withOutcome(outcome, fmt.Errorf("%w: event %.128q: %v", ErrGroupHalted, earlier, err))
}
