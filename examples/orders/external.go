package orders

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// externalSystem stands for a system that takes no part in our transactions, such as a payment provider. Each call appends
// a line with the event and the process to a file.
type externalSystem struct{ file string }

// replyTime is the time between the effect of a call and its reply. A process that dies in between cannot know whether
// the call was made.
const replyTime = 20 * time.Millisecond

func (s externalSystem) notify(_ context.Context, o Order) error {
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
