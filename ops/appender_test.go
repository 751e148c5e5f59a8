package ops

// Appender is the file of an archive.
type Appender = appender

// Over replaces the archive's file.
func (a *Archive) Over(wrap func(Appender) Appender) { a.lines.file = wrap(a.lines.file) }
