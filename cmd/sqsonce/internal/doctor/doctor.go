// Package doctor looks at a deployment for what goes wrong later: settings that lose messages, run events twice or wake people.
// It changes nothing.
package doctor

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Verdict is what a check came to.
type Verdict string

// The verdicts. A check that could not look is a Skip, never OK.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn"
	Fail Verdict = "FAIL"
	Skip Verdict = "skip"
)

// Finding is what a check found.
type Finding struct {
	ID      string  `json:"id"` // "Q1"
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`             // a sentence
	Fix     string  `json:"fix,omitempty"`    // a command, or what else to do
	Denied  bool    `json:"denied,omitempty"` // something was not seen for want of a permission
}

// Clients are AWS's, in one Region. One that is nil skips the checks that need it.
type Clients struct {
	SQS        *sqs.Client
	DynamoDB   *dynamodb.Client
	Lambda     *lambda.Client
	IAM        *iam.Client
	CloudWatch *cloudwatch.Client
	STS        *sts.Client
	HTTP       *http.Client // for workers
}

// Deployment is what is looked at, and what AWS cannot know of it. What is empty is not looked at.
type Deployment struct {
	QueueURL string // of the source queue; the queue as it was named where there is none: see NoQueue
	NoQueue  error  // why the queue that is named has no URL; of type NoSuchQueue where that is known
	Function string // name or ARN of the function behind an event source mapping
	Table    string // of the records
	Consumer string
	Role     string   // ARN of the role of the consumer. Default: the function's
	Workers  []string // as fleet.Fleet.Targets

	Retention      time.Duration // of the consumer's records. Default: host.DefaultRetention
	LongestHandler time.Duration
	AllOrNothing   bool // the function does not report batch item failures, and is meant not to
	Probe          bool // also try what the role may do, with calls that cannot succeed
}

// NoSuchQueue says that there is no queue of the name, or none that these credentials and this Region can have.
type NoSuchQueue struct{ Err error }

func (e *NoSuchQueue) Error() string { return e.Err.Error() }
func (e *NoSuchQueue) Unwrap() error { return e.Err }

// check is one or several lines of the table in docs/operating.md: it returns a finding for each of its IDs that applies.
type check struct {
	ids  []string
	look func(context.Context, *examination) []Finding
}

// checks returns all of them, in the order of their findings.
func checks() []check {
	return slices.Concat(queueChecks(), functionChecks(), tableChecks(), permissionChecks(), clockChecks(), workerChecks(), alarmChecks())
}

// Examine makes all checks that apply. A call of AWS takes callTimeout at most, and a service that has not answered is not
// asked again. A check that panics is a Skip.
func Examine(ctx context.Context, c Clients, d Deployment) []Finding {
	return slices.Collect(Each(ctx, c, d))
}

// Each is Examine, with each finding as soon as it is there.
func Each(ctx context.Context, c Clients, d Deployment) iter.Seq[Finding] {
	return each(ctx, &examination{Clients: c.bounded(), Deployment: d}, checks())
}

func examine(ctx context.Context, e *examination, checks []check) []Finding {
	return slices.Collect(each(ctx, e, checks))
}

func each(ctx context.Context, e *examination, checks []check) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		for _, check := range checks {
			if !e.has(check.ids[0]) {
				continue
			}
			var found []Finding
			if err := host.Recover(func() { found = check.look(ctx, e) }); err != nil {
				found = nil
				for _, id := range check.ids {
					found = append(found, Finding{ID: id, Verdict: Skip, Text: "the check " + err.Error() + ": please report it"})
				}
			}
			for _, f := range found {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// has reports whether the deployment has what a check is about.
func (d *Deployment) has(id string) bool {
	switch id[0] {
	case 'Q', 'A':
		return d.QueueURL != ""
	case 'L':
		return d.Function != ""
	case 'T':
		return d.Table != ""
	case 'W':
		return len(d.Workers) > 0
	default:
		return true
	}
}
