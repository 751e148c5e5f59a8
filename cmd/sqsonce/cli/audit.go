package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	auditFile     = "audit.jsonl"
	callerTimeout = 5 * time.Second
)

// auditLine is a line of audit.jsonl. A change has two: before it, and with the same ID when it has ended. One without a second
// line was killed, or is under way.
type auditLine struct {
	V        int       `json:"v"`
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	Event    string    `json:"event"` // "begin", "end"
	What     string    `json:"what"`
	Who      *who      `json:"who,omitempty"`
	Args     []string  `json:"args,omitempty"`
	Queue    string    `json:"queue,omitempty"` // a URL
	Key      string    `json:"key,omitempty"`   // of a record
	Outbox   string    `json:"outbox,omitempty"`
	Function string    `json:"function,omitempty"`
	Group    string    `json:"group,omitempty"` // of an event of the outbox
	Seq      int64     `json:"seq,omitempty"`
	EventID  string    `json:"event_id,omitempty"`
	Note     string    `json:"note,omitempty"`
	Before   any       `json:"before,omitempty"`
	After    any       `json:"after,omitempty"` // at the beginning: what is to be
	Error    string    `json:"error,omitempty"`
}

// who is who makes a change.
type who struct {
	ARN     string `json:"arn,omitempty"`     // as STS says
	Unknown string `json:"unknown,omitempty"` // why it is not known
	User    string `json:"user,omitempty"`
	Host    string `json:"host,omitempty"`
}

// change is a change whose first line is written.
type change struct {
	path string
	line auditLine
}

// audit writes down a change that is about to be made. Without that it is not made: who asks for an audit has it of everything.
// Who makes it is not worth an outage of STS: where that is not known the line says so.
func (a *app) audit(ctx context.Context, line auditLine) (*change, error) {
	folder, err := a.stateFolder()
	if err != nil {
		return nil, err
	}
	line.V, line.ID, line.Event, line.Args = 1, rand.Text(), "begin", a.args
	if a.caller == nil { // one for all changes of the command
		a.caller = a.who(ctx)
	}
	line.Who = a.caller
	c := &change{filepath.Join(folder, auditFile), line}
	if err := c.write(); err != nil {
		return nil, noState(err)
	}
	return c, nil
}

func (a *app) who(ctx context.Context) *who {
	w := &who{User: a.flags.operator}
	w.Host, _ = os.Hostname() // a name is of use, and not needed
	ctx, cancel := context.WithTimeout(ctx, callerTimeout)
	defer cancel()
	s, err := a.connect(ctx)
	if err == nil {
		w.ARN, err = s.caller(ctx)
	}
	if err != nil {
		w.Unknown = err.Error()
	}
	return w
}

// end writes down what became of the change. It is made then: a line that cannot be written is an error, and undoes nothing.
func (c *change) end(after any, err error) error {
	c.line = auditLine{V: 1, ID: c.line.ID, Event: "end", What: c.line.What, Queue: c.line.Queue, Key: c.line.Key, Function: c.line.Function, Outbox: c.line.Outbox, Group: c.line.Group, Seq: c.line.Seq, After: after}
	if err != nil {
		c.line.Error = err.Error()
	}
	if err := c.write(); err != nil {
		return fmt.Errorf("it was done, and the audit does not say so: %w", err)
	}
	return nil
}

// write appends the line, in one write: other processes append too.
func (c *change) write() error {
	c.line.Time = time.Now().UTC()
	text, err := json.Marshal(c.line)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	last := []byte{'\n'}
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		_, _ = file.ReadAt(last, info.Size()-1) // what was not read counts as a line's end
	}
	if last[0] != '\n' { // a disk was full
		text = append([]byte{'\n'}, text...)
	}
	_, err = file.Write(append(text, '\n'))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// stateFolder makes the folder of journals and of the audit, which its user alone can read.
// https://specifications.freedesktop.org/basedir-spec/latest/ (a relative path is ignored)
func (a *app) stateFolder() (string, error) {
	base := a.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", noState(err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	folder := filepath.Join(base, "sqsonce")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", noState(err)
	}
	return folder, nil
}

func noState(err error) error {
	return fail(exitFailed, "nothing was changed, because the audit cannot be written: %w. XDG_STATE_HOME names its folder", err)
}

// runLock is held by the one process of this computer that redrives from a queue, or restores to it. It names the journal of that, which stays there
// when the process is killed.
type runLock struct{ file *os.File }

// lockQueue also returns the journal of a process that was killed, or "".
func lockQueue(folder, url string) (*runLock, string, error) {
	_, name, _ := strings.Cut(url, "//")
	file, err := os.OpenFile(filepath.Join(folder, fileName(name)+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", noState(err)
	}
	locked, err := host.TryLock(file) // of two redrives where files have no lock, each sends what SQS hides from the other one
	if err == nil && !locked {
		err = fail(exitRefused, "another redrive or restore of this queue runs on this computer")
	}
	if err != nil {
		return nil, "", errors.Join(err, file.Close())
	}
	last, err := io.ReadAll(file)
	if err != nil {
		return nil, "", errors.Join(noState(err), file.Close())
	}
	return &runLock{file}, strings.TrimSpace(string(last)), nil
}

// set names the journal.
func (l *runLock) set(journal string) error {
	if err := l.file.Truncate(0); err != nil {
		return noState(err)
	}
	if _, err := l.file.WriteAt([]byte(journal+"\n"), 0); err != nil {
		return noState(err)
	}
	return nil
}

// end says that the process was not killed.
func (l *runLock) end() error { return errors.Join(l.file.Truncate(0), l.file.Close()) }

// newJournal returns the path of a file that does not exist.
func newJournal(folder, operation, queue string) string {
	return newFile(folder, operation+"-"+fileName(queue), ".jsonl")
}

func newFile(folder, name, ext string) string {
	return filepath.Join(folder, fmt.Sprintf("%s-%s-%s%s", name, time.Now().UTC().Format("20060102-150405"), rand.Text()[:5], ext))
}

// newArchive returns the path of a file that does not exist, beside the journals.
func (a *app) newArchive(queue string) (string, error) {
	folder, err := a.stateFolder()
	return newJournal(folder, "archive", queue), err
}

// fileName replaces what not every file system takes.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s)
}
