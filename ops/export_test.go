package ops

// Lock locks a dead-letter queue, as a redrive with a journal in the folder does.
func Lock(queueARN, folder string) (unlock func(), err error) {
	return (&DLQ{arn: queueARN}).lockIn("Redrive", folder)
}

// ClassOf is how List groups reasons.
var ClassOf = classOf

// Appender is a file that lines are written to.
type Appender = appender

// WrapJournals has f in place of the journals' files.
func (d *DLQ) WrapJournals(f func(Appender) Appender) { d.journalFile = f }

// Over has wrap in place of the archive's file.
func (a *Archive) Over(wrap func(Appender) Appender) { a.lines.file = wrap(a.lines.file) }
