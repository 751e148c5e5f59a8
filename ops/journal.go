package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

const journalVersion = 1

// ErrJournal says that a journal is not one of this queue, or cannot be read.
var ErrJournal = errors.New("ops: not a journal of a redrive from this queue: give another file")

// journal is a file with a JSON object in each line: what a redrive is about to send, has sent and has deleted. It has no bodies.
type journal struct {
	run  string            // the ID of the run that is not done; "" for none
	sent map[string]string // by the IDs of messages that were sent by earlier processes: the copies' IDs

	mu     sync.Mutex
	file   appender
	broken error // the first error: behind half a line nothing is written
}

// appender is what a journal needs of an *os.File.
type appender interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

type journalLine struct {
	Version int      `json:"sqsonce-redrive,omitempty"` // of the first line of each process
	Queue   string   `json:"queue,omitempty"`
	Run     string   `json:"run,omitempty"`
	Send    string   `json:"send,omitempty"` // a message ID
	Sent    string   `json:"sent,omitempty"` // a message ID
	Copy    string   `json:"copy,omitempty"` // the message ID of what was sent
	Deleted []string `json:"deleted,omitempty"`
	Done    bool     `json:"done,omitempty"`
}

// openJournal opens or creates the journal. A last line that was not written to its end is removed: it says less than the queue.
func openJournal(path, queueARN string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ops: journal: %w", err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() { // a pipe or a device has no end
		return nil, errors.Join(fmt.Errorf("%w: %s is no regular file", ErrJournal, path), err, file.Close())
	}
	j := &journal{file: file, sent: map[string]string{}}
	if err := j.read(file, queueARN); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

func (j *journal) read(file *os.File, queueARN string) error {
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("ops: journal: %w", err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for i, line := range bytes.Split(text[:whole], []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var l journalLine
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("%w: %s, line %d: %w", ErrJournal, file.Name(), i+1, err)
		}
		if (i == 0 || l.Version != 0) && (l.Version != journalVersion || l.Queue != queueARN) {
			return fmt.Errorf("%w: %s, line %d: version %d, queue %q", ErrJournal, file.Name(), i+1, l.Version, l.Queue)
		}
		j.add(l)
	}
	if whole == 0 && len(text) > 0 && text[0] != '{' {
		return fmt.Errorf("%w: %s", ErrJournal, file.Name())
	}
	if err := file.Truncate(int64(whole)); err != nil {
		return fmt.Errorf("ops: journal: %w", err)
	}
	_, err = file.Seek(int64(whole), io.SeekStart)
	return err
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
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.broken
	}
	_, err = j.file.Write(append(text, '\n'))
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = fmt.Errorf("ops: journal: %w", err)
	}
	return j.broken
}

// sentBefore returns the ID of the copy that an earlier process has sent of a message, and whether it has.
func (j *journal) sentBefore(id string) (copyID string, sent bool) {
	if j != nil {
		copyID, sent = j.sent[id]
	}
	return copyID, sent
}
