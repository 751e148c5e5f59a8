package ops

import "errors"

// The reasons that only this package knows.
var (
	ErrNotDeadLetter = errNotDeadLetter
	ErrChained       = errChained
	ErrDedupIDLost   = errDedupIDLost
	ErrOtherConsumer = errOtherConsumer
	ErrOtherKind     = errOtherKind
	ErrAgeLost       = errAgeLost
	ErrArchive       = errArchive
	ErrNotArchived   = errNotArchived
	ErrCrashed       = errCrashed
	ErrTwoAtOnce     = errTwoAtOnce
	ErrFailsYet      = errFailsYet
	ErrHoldOver      = errHoldOver
	ErrInUse         = errInUse
)

// ArchiveLine returns the number of the line that the error of an archive is about.
func ArchiveLine(err error) int {
	if e, ok := errors.AsType[*archiveError](err); ok {
		return e.line
	}
	return 0
}

// Lock locks a dead-letter queue, as a redrive with a journal in the folder does.
func Lock(queueARN, folder string) (unlock func(), err error) {
	return (&DLQ{arn: queueARN}).lockIn("Redrive", folder)
}

// ClassOf is how List groups reasons.
var ClassOf = classOf

// Appender is a file that lines are written to.
type Appender = appender

// Wrap has f in place of the files of journals and archives.
func (d *DLQ) Wrap(f func(Appender) Appender) { d.wrap = f }

// OpenArchive opens an archive as Export does.
func OpenArchive(path string) (close func() error, err error) {
	a, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	return a.close, nil
}
