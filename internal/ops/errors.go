package ops

import (
	"errors"
	"fmt"
)

// Why a message is left.
var (
	// ErrState says that a message is left because of the state of its event.
	ErrState         = errors.New("not sent in the state of its event")
	errCrashed       = errors.New("its last run ended with its process")
	ErrCrashLoop     = errors.New("its process crashed twice or more often: fix the cause first. --crash-loops sends it anyway")
	ErrNotSelected   = errors.New("not selected")
	ErrNoDestination = errors.New("the queue that it came from is not known, or does not name this one as its dead-letter queue: --source")
	ErrTooOften      = errors.New("redriven too often before: --max-redriven")
	ErrArrivedLater  = errors.New("came after the start")
	ErrCameBack      = errors.New("redriven by this run, and came back")
	ErrHeldBehind    = errors.New("behind a message of its group that was left: --skip-ahead")
	errHoldOver      = errors.New("the message may be visible to other consumers again")
)

// Why a message is left: it cannot be sent as the same event.
var (
	ErrNoRoom     = errors.New("no room for the attribute that keeps the event's key, or too large for the queue")
	ErrKeyChanges = errors.New("its key would change when it is sent again: the key function depends on more than the event-key attribute can keep")
	// ErrRemembered says that the record was reopened less than 65 s ago, and the copy has no room for the redriven attribute.
	ErrRemembered = errors.New("freed a moment ago, and no room for the attribute with which consumers look at the record again: redrive it in a minute")
)

// Problems of a message.
var (
	// ErrNoRecord says that the event's record was not found. The event may still have run, because a consumer with another key
	// function or store has its record elsewhere.
	ErrNoRecord   = errors.New("no record")
	errDefaultKey = fmt.Errorf("%w under its key: the consumer may use a key function or another store", ErrNoRecord)
	// ErrNoRecordOwnKey is the ErrNoRecord of a DLQ whose Options.Key is a user's key function.
	ErrNoRecordOwnKey = fmt.Errorf("%w under the key of this program's key function: the consumer may use another function or store", ErrNoRecord)
	// ErrExpired comes with ErrNoRecord, where Message.Expired is set.
	ErrExpired = errors.New("or the record has expired")
	// errOtherConsumer says that the host's copy names the record of another consumer.
	errOtherConsumer = errors.New("its copy names another consumer's record: is --consumer right?")
	ErrNoSource      = errors.New("its key depends on its source queue, which is unknown: --source names it")
	ErrS3            = errors.New("it is a notification of S3, and its key depends on whether the consumer has sqsonce.S3: --s3, or --s3=false")
	ErrOtherSource   = errors.New("it came from another queue: its records are those of that queue's consumer")
	errDedupIDLost   = errors.New("the event's key depends on the MessageDeduplicationId, which SQS has replaced when it moved the message")
)

// RefusedError says that nothing was done because of how the queue is.
type RefusedError struct {
	Operation string // "Open", "List", "Redrive", "Replay", "Export", "Delete", "Restore"
	Queue     string // its ARN
	Err       error  // one of those below
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s refused for %s: %v", e.Operation, e.Queue, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// What a [RefusedError] is for.
var (
	// errBusy says that the operation didn't start: one of the next two. Call it again when that has ended.
	errBusy          = errors.New("the queue is in use")
	ErrMoveTask      = fmt.Errorf("%w: a message move task moves its messages: wait until the task ends, or cancel it (sqs:CancelMessageMoveTask)", errBusy)
	errTwoAtOnce     = fmt.Errorf("%w: another process of this machine redrives from it or restores to it, with a journal in the same folder: wait until that has ended", errBusy)
	errNotDeadLetter = errors.New("no queue has a redrive policy that names it as the dead-letter queue: give the right queue, or --not-dead-letter")
	errChained       = errors.New("it has a redrive policy of its own, so that looking can move its messages on: --spend-receives if they may be")
)

// Why a redrive has stopped.
var (
	// ErrStopped is one of the next two. Messages that the redrive has not sent stay in the dead-letter queue.
	ErrStopped  = errors.New("the redrive has stopped")
	ErrCanary   = fmt.Errorf("%w after its canary", ErrStopped)
	errFailsYet = fmt.Errorf("%w, since redriven events fail again: fix the cause", ErrStopped)
)

// Why a message was not replayed, or what has become of it.
var (
	ErrNotAgain  = errors.New("the event is completed: to run it once more give --again the fence of that run")
	ErrRanAgain  = errors.New("the event has run again since the run that was to be repeated, and is completed: delete the message")
	ErrCommitted = errors.New("the event's effect was committed with its record, and is made once more: --committed if it is to be")
	ErrNotShown  = errors.New("the dead-letter queue does not show the message: it was deleted, another process has it (for a minute if that process was killed), or other messages of its group are before it")
	ErrOtherKey  = errors.New("the message gives another key than when it was listed or archived: are the consumer's name and its options right?")
	// ErrReopened says that a replay has stopped after the reopen. A consumer may not have run the event yet.
	ErrReopened     = errors.New("the event's record is reopened, and SQS has acknowledged no copy: any delivery runs it; replay the message again to go on")
	ErrNotCompleted = errors.New("the copy was sent, and the event was not seen to complete")
)

// Why a message of an archive is left.
var (
	ErrOtherQueue = errors.New("archived from another queue: --other-queue")
	errOtherKind  = errors.New("archived from a queue of the other kind: standard or FIFO")
	errAgeLost    = errors.New("no room for the attribute with the time of its first send: a later redrive could mistake the event, whose record has expired, for one that never ran")
)

// Problems of an archive or a journal.
var (
	errArchive     = errors.New("not an archive, or not one of a version that this program reads: give the file that Export or Delete wrote")
	errNotArchived = errors.New("the archive cannot hold the message as it is: its text is not UTF-8")
	// ErrJournal says that a journal is not one of this queue, or cannot be read.
	ErrJournal = errors.New("not a journal of this operation on this queue: give another file")
	// errInUse says that the file is open in another process, or in this one. Windows does not tell.
	errInUse = errors.New("something else writes to the file: wait until that has ended, or give another file")
)

// archiveError is a line that cannot be read. err wraps errArchive, or is an error of the reader.
type archiveError struct {
	line int // from 1
	err  error
}

func (e *archiveError) Error() string { return fmt.Sprintf("archive, line %d: %v", e.line, e.err) }

func (e *archiveError) Unwrap() error { return e.err }
