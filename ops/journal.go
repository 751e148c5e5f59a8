package ops

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/sqsonce/sqsonce/internal/opserr"
)

const journalVersion = 1

// journal is a file with a JSON object in each line: what a redrive, or a restore, is about to send, has sent and has deleted. It has
// no bodies.
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
			return fmt.Errorf("%w: %s, line %d: %w", opserr.ErrJournal, path, l.number, err)
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
