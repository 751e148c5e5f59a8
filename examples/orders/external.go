package orders

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
)

// externalSystem stands for a system that takes no part in our transactions, such as a payment provider. Each call appends
// a line with the event and the process to a file. Orders of articles that it does not know are rejected.
type externalSystem struct {
	file    string
	unknown string // file of the articles that it does not know, one on each line; "", or no such file: it knows all
}

// replyTime is the time between the effect of a call and its reply. A process that dies in between cannot know whether
// the call was made.
const replyTime = 20 * time.Millisecond

func (s externalSystem) notify(_ context.Context, o Order) error {
	if err := s.check(o); err != nil {
		return err
	}
	if s.file == "" {
		return nil
	}
	f, err := os.OpenFile(s.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d\n", o.ID, os.Getpid()) // one write: lines of several processes do not mix
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	time.Sleep(replyTime)
	return nil
}

// check rejects an order that the system would refuse at each try.
func (s externalSystem) check(o Order) error {
	if s.unknown == "" {
		return nil
	}
	unknown, err := os.ReadFile(s.unknown)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, l := range o.Lines {
		if slices.Contains(strings.Fields(string(unknown)), l.SKU) {
			return sqsonce.Reject(fmt.Errorf("the external system does not know article %s", l.SKU))
		}
	}
	return nil
}

// Call is one call that the external system received.
type Call struct {
	Event   string
	Process int
}

// ReadCalls returns the calls in the order the external system received them.
func ReadCalls(file string) ([]Call, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	var calls []Call
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		event, pid, _ := strings.Cut(lines.Text(), " ")
		process, err := strconv.Atoi(pid)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, len(calls)+1, err)
		}
		calls = append(calls, Call{Event: event, Process: process})
	}
	return calls, lines.Err()
}
