package ops_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

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
