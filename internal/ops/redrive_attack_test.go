package ops_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// refusing has SQS refuse an action from some call on.
type refusing struct {
	op, code string
	nth      int64
	n        atomic.Int64
}

func (c *refusing) around(in any, call call) (any, error) {
	if !strings.HasPrefix(fmt.Sprintf("%T", in), "*sqs."+c.op) || c.code == "" || c.n.Add(1) < c.nth {
		return call()
	}
	return nil, &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusForbidden}},
		Err:      &smithy.GenericAPIError{Code: c.code, Message: "refused"},
	}
}

// From some call on SQS denies one action, or throttles it: the run ends, with the action's name, and gives back what it can.
// When SQS answers again the next run finishes, and each event has its effect once.
func TestRedriveIsStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	const n = 35
	for _, op := range []string{"ReceiveMessage", "SendMessage", "DeleteMessage", "ChangeMessageVisibility"} {
		for _, code := range []string{"AccessDenied", "RequestThrottled"} {
			eachKind(t, fmt.Sprintf("%s/%s", op, code), setup{}, func(x *fixture) {
				x.fillGroups(n, 4)
				effects, stop := x.effects()
				c := &refusing{op: op, code: code, nth: 3}
				if op == "ChangeMessageVisibility" {
					c.nth = 1 // the only one
				}
				w := x.wired(spy{x.newProcess().sqs, c.around})
				d := must.Get(ops.Open(context.Background(), w, x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(x.admin).Key, x.store(x.admin) }))(x)
				journal := filepath.Join(x.TempDir(), "journal")
				redrive := func() (ops.Report, error) {
					return d.Redrive(context.Background(), func(o *ops.RedriveOptions) { o.Unknown, o.Journal, o.Rate = true, journal, 5 })
				}
				start := time.Now()
				r, err := redrive()
				took := time.Since(start)
				x.checkSums(r)
				left := r.Count(ops.ActionLeft, ops.ActionUndeleted, ops.ActionUnknownOutcome, ops.ActionSendFailed)
				if changes := op == "ChangeMessageVisibility"; !changes || left > 0 {
					if err == nil || !strings.Contains(err.Error(), "sqs:"+op) || !strings.Contains(err.Error(), code) {
						x.Errorf("error %v", err)
					}
					if hidden := x.hidden(); !changes && hidden != 0 || changes && !strings.Contains(err.Error(), fmt.Sprint(hidden, " messages stay hidden until")) {
						x.Errorf("%d messages are hidden; %v", hidden, err)
					}
				}
				if took > 6*time.Minute {
					x.Errorf("ended after %s", took)
				}
				c.code = ""
				time.Sleep(time.Minute) // Hold
				if r, err = redrive(); err != nil {
					x.Error(err)
				}
				time.Sleep(time.Minute)
				stop()
				if len(effects) != n || len(x.bodies(x.dlq)) != 0 {
					x.Errorf("%d effects of %d, %q left", len(effects), n, x.bodies(x.dlq))
				}
				for body, times := range effects {
					if times != 1 || w.sent[body] != 1 {
						x.Errorf("%s was sent %d times, and had its effect %d times", body, w.sent[body], times)
					}
				}
			})
		}
	}
}

// The user's code panics, or ends its goroutine, for one message: that is left, with the reason, and so is what comes behind it
// in its FIFO group. The others go back.
func TestRedriveWithBadUserCode(t *testing.T) {
	t.Parallel()
	const bad = "g1-1"
	isBad := func(m *sqsonce.Message) bool { return m.Body == bad }
	for name, end := range map[string]func(){"panics": func() { panic("boom") }, "ends": runtime.Goexit} {
		for of, set := range map[string]func(*ops.Options, *ops.RedriveOptions){
			"Filter": func(_ *ops.Options, r *ops.RedriveOptions) {
				r.Filter = func(m *ops.Message) bool {
					if isBad(&m.Message) {
						end()
					}
					return true
				}
			},
			"Key": func(o *ops.Options, _ *ops.RedriveOptions) {
				key := o.Key
				o.Key = func(m *sqsonce.Message) (string, error) {
					if isBad(m) {
						end()
					}
					return key(m)
				}
			},
			"Key, of the copy": func(o *ops.Options, _ *ops.RedriveOptions) {
				key := o.Key
				o.Key = func(m *sqsonce.Message) (string, error) {
					if isBad(m) && m.ID == "redriven" {
						end()
					}
					return key(m)
				}
			},
			"Store": func(o *ops.Options, _ *ops.RedriveOptions) {
				store := o.Store
				o.Store = inspector(func(ctx context.Context, key string) (dedup.Record, error) {
					if strings.HasSuffix(key, bad) {
						end()
					}
					return store.Inspect(ctx, key)
				})
			},
		} {
			eachKind(t, fmt.Sprintf("%s %s", of, name), setup{}, func(x *fixture) {
				x.send(x.dlq, "g0-1", "g1-0", bad, "g1-2", "g2-1")
				redrive := func(r *ops.RedriveOptions) {}
				d := x.redriver(func(o *ops.Options) {
					redrive = func(r *ops.RedriveOptions) { set(o, r) }
					set(o, &ops.RedriveOptions{})
				})
				r := x.redriveAll(d, redrive)
				want, left := "g0-1 g1-0 g1-2 g2-1", 1
				if x.fifo {
					want, left = "g0-1 g1-0 g2-1", 2
				}
				got := x.bodies(x.url)
				slices.Sort(got)
				if strings.Join(got, " ") != want {
					x.Errorf("sent %q", got)
				}
				if r.Count(ops.ActionLeft) != left {
					x.Errorf("%d left", r.Count(ops.ActionLeft))
				}
				for _, res := range r.Results {
					if res.Action == ops.ActionLeft && (res.Err == nil || errors.Is(res.Err, ops.ErrNotSelected)) {
						x.Errorf("%s: %v", res.ID, res.Err)
					}
				}
			})
		}
	}
}
