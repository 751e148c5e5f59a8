package ops

import (
	"errors"

	"github.com/sqsonce/sqsonce/internal/opserr"
)

// Errors that a program may act on. The text of any other error says what to do.
var (
	// ErrBusy says that nothing was done, since another redrive or restore runs, or one of AWS's. Try again when that has ended.
	ErrBusy = opserr.ErrBusy
	// ErrNoRecord does not say that the event never ran: a consumer with another key function or store has its record elsewhere.
	ErrNoRecord = errors.New("no record")
	// ErrState says that a message is left because of the state of its event.
	ErrState = errors.New("not sent in the state of its event")
	// ErrStopped says that a redrive has stopped, since redriven events fail again. Messages that it has not sent are where they were.
	ErrStopped = opserr.ErrStopped
	// ErrReopened says that a replay has stopped on its way. No consumer may have run the event meanwhile.
	ErrReopened = errors.New("ops: the event's record is reopened, and SQS has acknowledged no copy: any delivery runs it; replay the message again to go on")
)
