package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
)

// wrong needs a person: it is a card at the top of the first page, and the only thing there that is red.
type wrong struct{ Title, Text, To, Link string }

// findWrong sets what is wrong with the queues and the workers, or why that is not known.
func (d *overviewData) findWrong(watched bool, read workersRead) {
	for _, q := range d.Queues {
		if q.Err != nil {
			d.Wrong = append(d.Wrong, wrong{Title: q.Name + ": not read since " + clock(q.Since), Text: q.Err.Error()})
		}
		if n := q.Dead.Total(); n > 0 {
			d.Wrong = append(d.Wrong, wrong{fmt.Sprintf("%s has dead letters: about %s", q.DLQName, count(n)), "Oldest message lost: " + q.Loss.Text() + ".", dlqPath(q.Name), "Read them by reason"})
		}
		if q.At.IsZero() {
			d.Unknown = "Not known yet: SQS has not answered for " + q.Name + "."
		}
	}
	switch {
	case !watched:
		d.Unknown = cmp.Or(d.Unknown, "The console watches no workers: start it with --worker URL.")
	case read.at.IsZero():
		d.Unknown = cmp.Or(d.Unknown, "Not known yet: the workers have not been read.")
	}
	for _, v := range workerViews(read) {
		name := cmp.Or(v.Name, v.URL)
		stuck, known := v.Stats["stuck"]
		switch {
		case v.Err != nil:
			d.Wrong = append(d.Wrong, wrong{name + " does not answer", v.Err.Error(), "/workers", "Workers"})
		case v.Why() != "":
			d.Wrong = append(d.Wrong, wrong{fmt.Sprintf("%s is %s for %s", name, v.Ready(), v.Queue), v.Why(), "/workers", "Workers"})
		case !known:
			d.Unknown = cmp.Or(d.Unknown, "Not known: "+name+" does not say whether handlers are stuck.")
		}
		if stuck > 0 {
			d.Wrong = append(d.Wrong, wrong{fmt.Sprintf("%s stuck handlers in %s", whole(stuck), name), "They did not return after their contexts were cancelled.", "/workers#handlers", "Running handlers"})
		}
	}
	for _, v := range limitViews(read) {
		if len(v.Down()) > 0 {
			d.Wrong = append(d.Wrong, wrong{"The counter of limit " + v.Name + " is down", v.Why() + ". limit.Options.OnCounterDown decides about its messages.", "/workers#limits", "Limits"})
		}
	}
}

// reason is an error of a service in one line, with what to do. That of a page or of the console is its own text.
func reason(err error) string {
	do := ""
	switch {
	case awserr.Unidentified(err):
		do = ": renew the credentials, and start the console again"
	case awserr.Denied(err):
		do = ": allow it in the policy of your role"
	case awserr.Unsent(err), errors.Is(err, context.DeadlineExceeded):
		do = ": check the network, AWS_REGION and AWS_ENDPOINT_URL"
	case awserr.Busy(err):
		do = ": wait, the console tries again"
	}
	return awserr.Reason(err) + do
}
