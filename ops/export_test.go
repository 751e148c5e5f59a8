package ops

// Lock locks a dead-letter queue, as a redrive with a journal in the folder does.
func Lock(queueARN, folder string) (unlock func(), err error) {
	return (&DLQ{arn: queueARN}).lockIn("Redrive", folder)
}

// Appender is a file that journals are written to.
type Appender = appender

// WrapJournals has f in place of the journals' files.
func (d *DLQ) WrapJournals(f func(Appender) Appender) { d.journalFile = f }
