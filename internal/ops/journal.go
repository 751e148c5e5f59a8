package ops

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/sqsonce/sqsonce/internal/host"
)

const journalVersion = 1

// journal is a file with a JSON object in each line: the messages that a redrive, or a restore, is about to send, has sent and
// has deleted. It doesn't contain bodies.
type journal struct {
	run  string            // the ID of the run that is not done; "" for none
	sent map[string]string // by the IDs of messages that were sent by earlier processes: the copies' IDs

	*lineFile
}

type journalLine struct {
	Version int      `json:"sqsonce-redrive,omitempty"` // of the first line of each process
	Restore bool     `json:"restore,omitempty"`         // with Version: the message IDs are those of an archive
	Queue   string   `json:"queue,omitempty"`
	Run     string   `json:"run,omitempty"`
	Send    string   `json:"send,omitempty"` // a message ID
	Sent    string   `json:"sent,omitempty"` // a message ID
	Copy    string   `json:"copy,omitempty"` // the message ID of what was sent
	Deleted []string `json:"deleted,omitempty"`
	Done    bool     `json:"done,omitempty"`
}

// openJournal opens or creates the journal. A last line that was not written to its end is removed: it says less than the queue.
func openJournal(path, queueARN string, restore bool) (*journal, error) {
	j := &journal{sent: map[string]string{}}
	file, err := openLines("journal", path, `{"sqsonce-redrive":`, func(l line) error {
		if err := j.read(l, queueARN, restore); err != nil {
			return fmt.Errorf("%w: %s, line %d: %w", ErrJournal, path, l.number, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	j.lineFile = file
	return j, nil
}

// keepJournal opens the run's journal. A run that is not done goes on.
func (r *run) keepJournal(path string, restore bool) (err error) {
	if r.journal, err = openJournal(path, r.d.arn, restore); err != nil {
		return err
	}
	r.journal.file = r.d.wrapped(r.journal.file)
	r.report.Run = cmp.Or(r.journal.run, r.report.Run)
	return r.journal.write(journalLine{Version: journalVersion, Restore: restore, Queue: r.d.arn, Run: r.report.Run})
}

func (j *journal) read(in line, queueARN string, restore bool) error {
	var l journalLine
	if err := json.Unmarshal(in.text, &l); err != nil {
		return err
	}
	if (in.number == 1 || l.Version != 0) && (l.Version != journalVersion || l.Queue != queueARN || l.Restore != restore) {
		return fmt.Errorf("version %d, queue %q, of a restore: %t", l.Version, l.Queue, l.Restore)
	}
	j.add(l)
	return nil
}

func (j *journal) add(l journalLine) {
	switch {
	case l.Version != 0:
		j.run = l.Run
	case l.Sent != "":
		j.sent[l.Sent] = l.Copy
	case l.Done:
		j.run = ""
	}
}

// write appends a line, which is on the disk when it returns. A nil journal writes nothing.
func (j *journal) write(l journalLine) error {
	if j == nil {
		return nil
	}
	return j.lineFile.write(l)
}

func (j *journal) close() {
	if j != nil {
		_ = j.file.Close() // each line is on the disk
	}
}

// sentBefore returns the ID of the copy that an earlier process has sent of a message, and whether it has.
func (j *journal) sentBefore(id string) (copyID string, sent bool) {
	if j != nil {
		copyID, sent = j.sent[id]
	}
	return copyID, sent
}

// lockIn keeps other processes of this machine, and other calls in this one, from the queue until the function that it returns is
// called. The lock is that of a file beside the journal. It has the queue's name, not the journal's: of two runs from one queue
// each may have a journal of its own. It stays empty, and is not removed: another process may have opened it to lock it. The
// system gives the lock back when its process ends, however it does.
func (d *DLQ) lockIn(operation, folder string) (unlock func(), err error) {
	queue, err := host.ParseQueueARN(d.arn)
	if err != nil {
		return nil, err
	}
	name := strings.Join([]string{"sqsonce", queue.Partition, queue.Region, queue.Account, queue.Name}, "-") + ".lock"
	file, err := os.OpenFile(filepath.Join(folder, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	locked, err := host.TryLock(file)
	switch {
	case err != nil:
		err = fmt.Errorf("lock: %s: %w", file.Name(), err)
	case !locked:
		err = d.refused(operation, fmt.Errorf("%w: %s is locked", errTwoAtOnce, file.Name()))
	default:
		return func() { _ = file.Close() }, nil
	}
	return nil, errors.Join(err, file.Close())
}

// mostLine is longer than any line that is written: one of a message of 1 MiB whose every character is escaped.
const mostLine = 16 << 20

var errLongLine = fmt.Errorf("longer than %d bytes", mostLine)

// line is a line of a file, with its number from 1.
type line struct {
	number int
	text   []byte // without its end
	torn   bool   // it has no end, and is the last one: a process was killed while it wrote, or a disk was full
}

// linesOf returns the lines that are not empty.
func linesOf(r io.Reader) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		buffered := bufio.NewReaderSize(r, 64<<10)
		for n := 1; ; n++ {
			text, err := readLine(buffered)
			whole := bytes.HasSuffix(text, []byte("\n"))
			text = bytes.TrimSuffix(text, []byte("\n"))
			switch {
			case err != nil && err != io.EOF:
				yield(line{number: n}, err)
				return
			case len(text) > 0 && !yield(line{n, text, !whole}, nil), err == io.EOF:
				return
			}
		}
	}
}

// readLine returns a line with its end, or what there is with an error.
func readLine(r *bufio.Reader) (text []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if text = append(text, part...); len(text) > mostLine {
			return nil, errLongLine
		}
		if err != bufio.ErrBufferFull {
			return text, err
		}
	}
}

// lineFile is a file with a JSON object in each line, to which lines are appended.
type lineFile struct {
	what string // "journal" or "archive"
	torn int    // the number of a last line that was removed, since it was not written to its end; 0: none

	mu     sync.Mutex
	file   appender
	broken error // the first error: behind half a line nothing is written
}

// appender is the part of an *os.File that a lineFile uses.
type appender interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

// wrapped returns what lines are appended to.
func (d *DLQ) wrapped(file appender) appender {
	if d.wrap == nil {
		return file
	}
	return d.wrap(file)
}

// openLines opens or creates a file, with mode 0600, locks it, and calls read with each of its lines. head is how the first one
// begins. A last line that was not written to its end is removed, once read has accepted the others: nothing depends on it.
func openLines(what, path, head string, read func(line) error) (*lineFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	f := &lineFile{what: what, file: file}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() { // a pipe or a device has no end
		return nil, errors.Join(f.failed(fmt.Errorf("%s is no regular file: %w", path, os.ErrInvalid)), err, file.Close())
	}
	// Else a second process could remove a line that the first one has yet to end.
	if locked, err := host.TryLock(file); err != nil || !locked {
		return nil, errors.Join(f.failed(fmt.Errorf("%s: %w", path, cmp.Or(err, errInUse))), file.Close())
	}
	if err := f.readAll(file, head, read); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// Somebody may have made it, readable by all.
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		if err := file.Chmod(0o600); err != nil {
			return nil, errors.Join(f.failed(err), file.Close())
		}
	}
	return f, nil
}

func (f *lineFile) readAll(file *os.File, head string, read func(line) error) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return f.failed(err)
	}
	for l, err := range linesOf(file) {
		if err != nil {
			return f.failed(fmt.Errorf("%s, line %d: %w", file.Name(), l.number, err))
		}
		if !l.torn {
			if err := read(l); err != nil {
				return err
			}
			continue
		}
		if l.number == 1 && !beginsOf(string(l.text), head) {
			return read(l) // which is no line, and no beginning of one
		}
		f.torn, size = l.number, size-int64(len(l.text))
	}
	if err := file.Truncate(size); err != nil {
		return f.failed(err)
	}
	if _, err := file.Seek(size, io.SeekStart); err != nil {
		return f.failed(err)
	}
	if size > 0 {
		return nil
	}
	if err := syncFolder(filepath.Dir(file.Name())); err != nil {
		return f.failed(err)
	}
	return nil
}

// beginsOf reports whether one text is the beginning of the other.
func beginsOf(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// syncFolder has the name of a new file on the disk: lines on the disk are of no use in a file that is in no folder.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil // it cannot, and need not
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (f *lineFile) failed(err error) error { return fmt.Errorf("%s: %w", f.what, err) }

// write appends lines, which are on the disk when it returns.
func (f *lineFile) write(lines ...any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, l := range lines {
		if err := encoder.Encode(l); err != nil {
			return f.failed(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return f.broken
	}
	_, err := f.file.Write(text.Bytes())
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		f.broken = f.failed(err)
	}
	return f.broken
}
