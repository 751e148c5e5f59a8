package orders

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// outside stands for a system that knows nothing of our records, such as a payment provider: each call appends a line
// with the event and the process to a file.
type outside struct{ file string }

func (s outside) notify(_ context.Context, o Order) error {
	if s.file == "" {
		return nil
	}
	f, err := os.OpenFile(s.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	// One write: appends of several processes do not mix within a line.
	_, err = fmt.Fprintf(f, "%s %d\n", o.ID, os.Getpid())
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		time.Sleep(answerTime)
	}
	return err
}

// answerTime passes between what the outside system does and its answer: whoever dies in it cannot know.
const answerTime = 20 * time.Millisecond

// Call is one call that reached the outside system.
type Call struct {
	Event   string
	Process int
}

// ReadCalls returns the calls in the order they arrived.
func ReadCalls(file string) ([]Call, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
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
