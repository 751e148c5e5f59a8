package ops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/opserr"
)

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
		return nil, fmt.Errorf("ops: lock: %w", err)
	}
	locked, err := host.TryLock(file)
	switch {
	case err != nil:
		err = fmt.Errorf("ops: lock: %s: %w", file.Name(), err)
	case !locked:
		err = d.refused(operation, fmt.Errorf("%w: %s is locked", opserr.ErrTwoAtOnce, file.Name()))
	default:
		return func() { _ = file.Close() }, nil
	}
	return nil, errors.Join(err, file.Close())
}
