package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

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
	return fail(exitFailed, "nothing was changed: what is done is written down first, and cannot be: %w; XDG_STATE_HOME says where", err)
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
	name := fmt.Sprintf("%s-%s-%s-%s.jsonl", operation, fileName(queue), time.Now().UTC().Format("20060102-150405"), rand.Text()[:5])
	return filepath.Join(folder, name)
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
