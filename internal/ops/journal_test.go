package ops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A journal says what was sent and deleted, by IDs, for its owner alone.
func TestJournal(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send(x.dlq, "secret-1", "secret-2")
		path := filepath.Join(t.TempDir(), "journal")
		r := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Journal = path })
		a, b := r.Results[0], r.Results[1]
		want := fmt.Sprintf(`{"sqsonce-redrive":1,"queue":"%sjobs-dlq.fifo","run":"%s"}
{"send":"%s"}
{"sent":"%[3]s","copy":"%s"}
{"send":"%s"}
{"sent":"%[5]s","copy":"%s"}
{"deleted":["%[3]s","%[5]s"]}
{"done":true}
`, arnPrefix, r.Run, a.ID, a.SentID, b.ID, b.SentID)
		got, err := os.ReadFile(path)
		if string(got) != want || err != nil {
			t.Errorf("%s, %v\nwant\n%s", got, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		again := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Journal = path })
		if again.Run == r.Run {
			t.Error("a run that is done goes on")
		}
	})
}

// killer ends its process before or after the n-th call of SQS that changes something, and keeps the journal of that moment.
type killer struct {
	ops.Client
	p       *process
	path    string
	at      int64 // odd: after the call
	n       atomic.Int64
	mu      sync.Mutex
	journal []byte
	killed  chan struct{}   // closed then
	ids     map[string]bool // of what was received
}

func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.p.dead.Swap(true) {
		k.journal, _ = os.ReadFile(k.path)
		close(k.killed)
	}
}

func (k *killer) around(_ any, call call) (any, error) {
	n := 2 * k.n.Add(1)
	if n == k.at {
		k.kill()
	}
	out, err := call()
	if n+1 == k.at {
		k.kill()
	}
	for _, m := range received(out, err) {
		k.ids[*m.MessageId] = true
	}
	return out, err
}

func newKiller(c ops.Client, p *process, path string, at int64) *killer {
	k := &killer{p: p, path: path, at: at, killed: make(chan struct{}), ids: map[string]bool{}}
	k.Client = spy{c, k.around}
	return k
}

// redriveAndDie redrives in a process that is killed, and returns its journal.
func (x *fixture) redriveAndDie(at int64) []byte {
	x.Helper()
	p := x.newProcess()
	k := newKiller(p.sqs, p, filepath.Join(x.TempDir(), "journal"), at)
	d := must.Get(ops.Open(context.Background(), k, x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(x.admin).Key, x.store(x.admin) }))(x)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Minute, cancel)
	_, _ = d.Redrive(ctx, noCanary, func(o *ops.RedriveOptions) { o.Journal = k.path })
	k.kill()
	return k.journal
}

// A redrive that was killed goes on with its journal: nothing is lost, and only what was under way is sent a second time.
func TestResume(t *testing.T) {
	t.Parallel()
	for at := int64(2); at < 26; at++ {
		eachKind(t, fmt.Sprint("at=", at), setup{}, func(x *fixture) {
			const n = 25
			x.fillGroups(n, 3)
			written := x.redriveAndDie(at)
			time.Sleep(6 * time.Minute) // SQS's deduplication does not help
			path := filepath.Join(x.TempDir(), "resumed")
			must.Do(x, os.WriteFile(path, append(written, `{"sent":"torn`+strings.Repeat("x", 20_000)...), 0o600))
			r := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Journal = path })
			if done := strings.Contains(string(written), `"done"`); strings.Contains(string(written), r.Run) == done {
				x.Errorf("run %s after the journal\n%s", r.Run, written)
			}
			if resumed, _ := os.ReadFile(path); !strings.HasSuffix(string(resumed), "}\n{\"done\":true}\n") {
				x.Errorf("the journal ends with %q", resumed[max(0, len(resumed)-100):])
			}
			underWay := strings.Count(string(written), `"send"`) - strings.Count(string(written), `"sent"`)
			copies := map[string]int{}
			for _, body := range x.bodies(x.url) {
				copies[body]++
			}
			twice := 0
			for _, c := range copies {
				twice += c - 1
			}
			if len(copies) != n || twice > underWay || len(x.bodies(x.dlq)) != 0 {
				x.Errorf("%d events in the source, %d copies too many, %d under way, %d left", len(copies), twice, underWay, len(x.bodies(x.dlq)))
			}
		})
	}
}

// On FIFO a message that was sent and not deleted does not hold back its group, whatever has become of its event.
func TestResumeBehindCompleted(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send(x.dlq, "a-1", "a-2", "a-3")
		path := filepath.Join(t.TempDir(), "journal")
		x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 1, Do: fault.FailEntries, Entries: []int{0}}}})
		x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Journal = path })
		x.sqs.Set(fault.Plan{})
		x.wantBodies(x.dlq, "a-1")
		_, stop := x.effects()
		time.Sleep(time.Minute)
		stop()
		x.send(x.dlq, "a-4")
		r := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Journal = path })
		if r.Count(ops.ActionRedriven) != 2 {
			t.Errorf("%d redriven", r.Count(ops.ActionRedriven))
		}
		x.wantBodies(x.url, "a-4")
	})
}

// What is no journal of this queue is refused, and not changed.
func TestBadJournals(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(1)
		d := x.redriver()
		header := `{"sqsonce-redrive":1,"queue":"` + arnPrefix + `jobs-dlq","run":"R"}` + "\n"
		for _, text := range []string{
			"text", "text\n", "{}\n", `{"send":"1"}` + "\n", strings.ReplaceAll(header, "jobs-dlq", "other"), strings.ReplaceAll(header, ":1", ":2"),
			header + "{\n" + header,
		} {
			path := filepath.Join(t.TempDir(), "journal")
			must.Do(t, os.WriteFile(path, []byte(text), 0o644))
			before := must.Get(os.Stat(path))(t).Mode()
			_, err := d.Redrive(context.Background(), noCanary, func(o *ops.RedriveOptions) { o.Journal = path })
			if after, _ := os.ReadFile(path); !errors.Is(err, ops.ErrJournal) || string(after) != text || must.Get(os.Stat(path))(t).Mode() != before {
				t.Errorf("%q: %v, now %q, or of another mode", text, err, after)
			}
		}
		x.wantBodies(x.url, "")
	})
}
