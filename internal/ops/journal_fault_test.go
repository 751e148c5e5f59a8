package ops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

var errDisk = errors.New("no space left on device")

// disk is the file of a journal or of an archive, on a disk that fails at a write or a sync.
type disk struct {
	ops.Appender
	failWrite, failSync int  // the number of the call; 0: none
	half                bool // it writes half of the lines, and not to the end of one
	once                bool // it does not fail again

	mu            sync.Mutex
	writes, syncs int
	failed        bool
	written, safe string // what a machine that loses its power keeps is safe
}

func (d *disk) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	if d.failed && !d.once {
		return 0, errDisk
	}
	if d.writes == d.failWrite {
		if d.failed = true; !d.half {
			return 0, errDisk
		}
		text = text[:max(1, len(text)/2-7)]
	}
	d.written += string(text)
	n, err := d.Appender.Write(text)
	if d.writes == d.failWrite {
		err = errDisk
	}
	return n, err
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.syncs++; d.failed && !d.once || d.syncs == d.failSync {
		d.failed = true
		return errDisk
	}
	d.safe = d.written
	return d.Appender.Sync()
}

func (d *disk) has(line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Contains(d.safe, line)
}

// mend lets a disk that has failed go on.
func (d *disk) mend() { d.failWrite, d.failSync, d.failed = 0, 0, false }

// journalled is a client that sees whether each step has its line on the disk.
func (x *fixture) journalled(c ops.Client, disk *disk) ops.Client {
	var mu sync.Mutex
	ids := map[string]string{} // by body, and by receipt handle
	want := func(line, of string) {
		mu.Lock()
		id := ids[of]
		mu.Unlock()
		if id == "" || !disk.has(fmt.Sprintf(`{"%s":"%s"`, line, id)) {
			x.Errorf("no line %s of %s, %s is on the disk", line, of, id)
		}
	}
	return spy{c, func(in any, call call) (any, error) {
		switch in := in.(type) {
		case *sqs.SendMessageBatchInput:
			for _, e := range in.Entries {
				want("send", *e.MessageBody)
			}
		case *sqs.DeleteMessageBatchInput:
			for _, e := range in.Entries {
				want("sent", *e.ReceiptHandle)
			}
		}
		out, err := call()
		mu.Lock()
		defer mu.Unlock()
		for _, m := range received(out, err) {
			ids[*m.Body], ids[*m.ReceiptHandle] = *m.MessageId, *m.MessageId
		}
		return out, err
	}}
}

// A disk that is full, or fails, at any line: nothing is sent or deleted without its line on the disk, the run ends with the
// error, and gives back what it has not deleted. With what is left of the journal the next run goes on, and sends only those
// messages a second time whose sending was under way.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	const n = 6
	for name, disk := range map[string]func(at int) *disk{
		"full":            func(at int) *disk { return &disk{failWrite: at} },
		"full in a line":  func(at int) *disk { return &disk{failWrite: at, half: true} },
		"full for a time": func(at int) *disk { return &disk{failWrite: at, half: true, once: true} },
		"sync":            func(at int) *disk { return &disk{failSync: at} },
		"sync, once":      func(at int) *disk { return &disk{failSync: at, once: true} },
	} {
		for at := 1; at <= 17; at++ { // there are 17 lines at most
			eachKind(t, fmt.Sprintf("%s/at=%d", name, at), setup{}, func(x *fixture) {
				x.fillGroups(n, 2)
				d := disk(at)
				dlq := must.Get(ops.Open(context.Background(), x.journalled(x.newProcess().sqs, d), x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(x.admin).Key, x.store(x.admin) }))(x)
				dlq.Wrap(func(f ops.Appender) ops.Appender { d.Appender = f; return d })
				path := filepath.Join(x.TempDir(), "journal")
				r, err := dlq.Redrive(context.Background(), noCanary, func(o *ops.RedriveOptions) { o.Journal = path })
				if errors.Is(err, errDisk) != d.failed || err != nil && !strings.Contains(err.Error(), "journal") {
					x.Errorf("error %v, disk failed: %t", err, d.failed)
				}
				x.checkReport(r)
				if x.hidden() != 0 {
					x.Errorf("%d messages are hidden", x.hidden())
				}
				left := d.written
				if at%2 == 0 {
					left = d.safe // and the power went
				}
				must.Do(x, os.WriteFile(path, []byte(left), 0o600))
				time.Sleep(6 * time.Minute) // SQS's deduplication does not help
				x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Journal = path })
				left = left[:strings.LastIndexByte(left, '\n')+1]
				underWay := strings.Count(left, `{"send"`) - strings.Count(left, `{"sent"`)
				copies := x.bodies(x.url)
				distinct := map[string]bool{}
				for _, body := range copies {
					distinct[body] = true
				}
				if len(distinct) != n || len(copies)-n > underWay || len(x.bodies(x.dlq)) != 0 {
					x.Errorf("%d events, %d copies, %d were under way, %d left", len(distinct), len(copies), underWay, len(x.bodies(x.dlq)))
				}
			})
		}
	}
}

// What is no file, or cannot be opened, is refused before anything is received.
func TestJournalIsNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	kinds := map[string]error{"": nil, "missing/journal": os.ErrNotExist}
	if runtime.GOOS != "windows" {
		must.Do(t, os.Symlink("/dev/zero", filepath.Join(folder, "endless")))
		kinds["endless"] = os.ErrInvalid
	}
	bubble(t, setup{}, func(x *fixture) {
		x.fill(1)
		for name, want := range kinds {
			_, err := x.redriver().Redrive(context.Background(), noCanary, func(o *ops.RedriveOptions) { o.Journal = filepath.Join(folder, name) })
			if err == nil || want != nil && !errors.Is(err, want) || x.sqs.Messages(x.dlq)[0].ReceiveCount != 0 {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
}
