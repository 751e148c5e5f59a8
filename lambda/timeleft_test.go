package lambda

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestRetentionEnds: no delay of a message reaches into the last part of its retention, here 6 of 60 min. What is delivered then and does
// not succeed goes to the dead-letter queue, with the reason. Without one a line says so, and the message comes back once more.
func TestRetentionEnds(t *testing.T) {
	later := sqsonce.RetryAfter(2*time.Hour, errTest)
	down := sqsonce.UnavailableUntil(errTest, func(context.Context) error { return errTest })
	for name, tt := range map[string]struct {
		err    error
		fifo   bool
		faults []fault.Rule
		first  time.Duration // the message is visible in it, after an attempt at 30 min; 0: it is in the dead-letter queue
		second time.Duration // after one at 54 min
	}{
		"fails":                    {later, false, nil, 24 * time.Minute, 0},
		"fails, FIFO":              {later, true, nil, 24 * time.Minute, 0},
		"unavailable":              {sqsonce.Unavailable(errTest), false, nil, time.Minute, 0},
		"in an outage":             {down, false, nil, time.Minute, 0},
		"rejected":                 {sqsonce.Reject(errTest), false, nil, 0, 0},
		"in progress":              {sqsonce.RetryAfter(2*time.Hour, sqsonce.ErrInProgress), false, nil, 24 * time.Minute, visibility / 2},
		"lease lost":               {sqsonce.ErrLeaseLost, false, nil, visibility, visibility},
		"the queue takes none":     {later, false, []fault.Rule{{Op: opSend, Nth: 2, Times: 1000, Do: fault.Error, Code: "AccessDenied"}}, 24 * time.Minute, visibility / 2},
		"there is no queue for it": {later, false, nil, 24 * time.Minute, visibility / 2},
		"SQS does not tell":        {later, false, []fault.Rule{{Op: opAttributes, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}, 2 * time.Hour, 2 * time.Hour},
	} {
		for age, want := range map[time.Duration]time.Duration{30 * time.Minute: tt.first, 54 * time.Minute: tt.second} {
			runWithQueue(t, fmt.Sprintf("%s/%s", name, age), tt.fifo, tt.faults, func(x *fixture) {
				x.set(x.url, "MessageRetentionPeriod", "3600")
				x.send("a1")
				time.Sleep(age)
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				r, err := x.wrap(fails(tt.err), func(o *Options) {
					if name == "there is no queue for it" {
						o.DeadLetterQueue = ""
					}
				})(ctx, x.receive())
				dead := x.dead()
				switch expired := strings.Contains(dead, errExpires.Error()); {
				case want == 0 && (!strings.Contains(dead, "it failed") || expired != (name != "rejected")):
					x.Errorf("in the dead-letter queue: %q\n%s", dead, &x.log)
				case want == 0 && (err != nil || len(r.BatchItemFailures) > 0):
					x.Errorf("got %v, %v, want a success", r, err)
				case want != 0 && (dead != "" || x.visibleIn()["a1"] != want):
					x.Errorf("visible in %s, want %s; in the dead-letter queue: %q\n%s", x.visibleIn()["a1"], want, dead, &x.log)
				}
				if said := x.log.count("SQS deletes the message soon") > 0; said != (want == visibility/2 && name != "in progress") || x.log.count("message rejected") > 0 {
					x.Errorf("said %t:\n%s", said, &x.log)
				}
			})
		}
	}
}
