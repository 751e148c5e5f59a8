package ops

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
