// Package doctor looks at a deployment for what goes wrong later: settings that lose messages, run events twice or wake people.
// It changes nothing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Verdict is what a check came to.
type Verdict string

// The verdicts. A check that could not look is Unknown, never OK.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn"
	Fail    Verdict = "FAIL"
	Unknown Verdict = "unknown"
	Skip    Verdict = "skip" // never looked at: the text says what to use instead
)

// Finding is what a check found.
type Finding struct {
	ID      string  `json:"id"` // "Q1"
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`             // a sentence
	Fix     string  `json:"fix,omitempty"`    // a command, or what else to do
	Missed  bool    `json:"missed,omitempty"` // something was not seen
	Denied  bool    `json:"denied,omitempty"` // of that, for want of a permission
}

// Clients are AWS's, in one Region. One that is nil skips the checks that need it.
type Clients struct {
	SQS        *sqs.Client
	DynamoDB   *dynamodb.Client
	Lambda     *lambda.Client
	IAM        *iam.Client
	CloudWatch *cloudwatch.Client
	STS        *sts.Client
	Scheduler  *scheduler.Client
	HTTP       *http.Client // for workers
}

// Deployment is what is looked at, and what AWS cannot know of it. What is empty is not looked at.
type Deployment struct {
	QueueURL string // of the source queue; the queue as it was named where there is none: see NoQueue
	NoQueue  error  // why the queue that is named has no URL; of type NoSuchQueue where that is known
	Function string // name or ARN of the function behind an event source mapping
	Table    string // of the records
	Consumer string
	Role     string                      // ARN of the role of the consumer. Default: the function's
	Workers  []string                    // as fleet.Fleet.Targets
	Store    func(context.Context) error // the check of the store that has the records in place of Table

	Retention      time.Duration // of the consumer's records. Default: host.DefaultRetention
	LongestHandler time.Duration
	Limits         string // the function has a limiter: see LimitsFleet; "": not known
	NoClient       bool   // the function has no SQS client: lambda.NoClient, or lambda.Wrap without one
	AllOrNothing   bool   // the function does not report batch item failures, and is meant not to
	Look           string // the command that lists the dead-letter queue
	Probe          bool   // also try what the role may do, with calls that cannot succeed
}

// The values of Deployment.Limits, by what the rules count for. The rules of workers say that themselves.
const (
	LimitsFleet   = "fleet"   // with a Counter
	LimitsProcess = "process" // each process for itself
)

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
// asked again. A check that panics is Unknown.
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
					found = append(found, Finding{ID: id, Verdict: Unknown, Text: "the check " + err.Error() + ": please report it"})
				}
			}
			for _, f := range found {
				if f.Missed = f.Missed || f.Verdict == Unknown; !yield(f) {
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
	case 'S':
		return d.Store != nil
	case 'W':
		return len(d.Workers) > 0
	default: // of the caller and the clock
		return d.QueueURL != "" || d.Function != "" || d.Table != "" || d.Role != ""
	}
}

// examination is one run of the checks. It asks for each fact once, and remembers that it could not be had. Its checks run one after
// the other.
type examination struct {
	Clients // bounded
	Deployment

	source, dead       asked[*queue]
	mappings, deadRead asked[[]lambdatypes.EventSourceMappingConfiguration]
	configured         asked[*lambda.GetFunctionConfigurationOutput]
	table              asked[*ddbtypes.TableDescription]
	caller             asked[*sts.GetCallerIdentityOutput]
}

// questionTimeout bounds a question of several calls: the pages of a list.
const questionTimeout = 3 * callTimeout

// asked is a fact that is asked for once.
type asked[T any] struct {
	done  bool
	value T
	err   error
}

func (a *asked[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	if !a.done {
		ctx, cancel := context.WithTimeout(ctx, questionTimeout)
		defer cancel()
		a.value, a.err = ask(ctx)
		a.done = true
	}
	return a.value, a.err
}

// errNoClient says that a deployment is looked at without the service.
var errNoClient = errors.New("no client")

// identity is who has the credentials.
func (e *examination) identity(ctx context.Context) (*sts.GetCallerIdentityOutput, error) {
	return e.caller.get(ctx, func(ctx context.Context) (*sts.GetCallerIdentityOutput, error) {
		if e.STS == nil {
			return nil, errNoClient
		}
		return e.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	})
}

// foreign returns why something of an account cannot be seen with these credentials: it is another one than theirs. Where theirs is
// not known it is nil.
func (e *examination) foreign(ctx context.Context, what, account string) error {
	own, err := e.identity(ctx)
	if err != nil || aws.ToString(own.Account) == "" || *own.Account == account {
		return nil
	}
	return fmt.Errorf("%s of account %s cannot be seen with credentials of account %s", what, account, *own.Account)
}

// configuration is that of the function: of the version that the mapping invokes, where that can be seen.
func (e *examination) configuration(ctx context.Context) (*lambda.GetFunctionConfigurationOutput, error) {
	return e.configured.get(ctx, func(ctx context.Context) (*lambda.GetFunctionConfigurationOutput, error) {
		if e.Lambda == nil {
			return nil, errNoClient
		}
		name := &e.Function
		if m, err := e.mapping(ctx); err == nil && m != nil {
			name = m.FunctionArn
		}
		return e.Lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: name})
	})
}

// unseen is the finding of a check that could not look.
func unseen(id string, err error) Finding {
	return Finding{ID: id, Verdict: Unknown, Text: reason(err), Denied: awserr.Denied(err)}
}

// reason is why a question has no answer, with the action that was asked for.
func reason(err error) string {
	if away, ok := errors.AsType[*awayError](err); ok && errors.Is(err, errTimeout) {
		return away.Error()
	}
	text := awserr.Reason(err)
	if awserr.Action(err) == "" {
		text = "could not look: " + text
	}
	return text
}

// report collects what one check finds. A check may find several things, and see only a part.
type report struct {
	id      string
	verdict Verdict // "": nothing found
	texts   []string
	fixes   []string
	missed  []string // why something was not seen
	denied  bool     // of that
}

func (r *report) fail(fix, format string, args ...any) { r.found(Fail, fix, format, args...) }
func (r *report) warn(fix, format string, args ...any) { r.found(Warn, fix, format, args...) }

func (r *report) found(v Verdict, fix, format string, args ...any) {
	if r.verdict != Fail {
		r.verdict = v
	}
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
	if fix != "" && !slices.Contains(r.fixes, fix) {
		r.fixes = append(r.fixes, fix)
	}
}

// miss says that something was not seen. With a nil error it says nothing.
func (r *report) miss(err error) {
	if err == nil {
		return
	}
	r.denied = r.denied || awserr.Denied(err)
	if text := reason(err); !slices.Contains(r.missed, text) {
		r.missed = append(r.missed, text)
	}
}

// finding is what was found. Only where nothing was, and all was seen, it is OK, with that text.
func (r *report) finding(format string, args ...any) Finding {
	f := Finding{ID: r.id, Verdict: r.verdict, Text: strings.Join(r.texts, "; "), Fix: joinFixes(r.fixes), Denied: r.denied, Missed: len(r.missed) > 0}
	missed := strings.Join(r.missed, ", ")
	switch {
	case r.verdict == "" && missed != "":
		f.Verdict, f.Text = Unknown, missed
	case r.verdict == "":
		f.Verdict, f.Text = OK, fmt.Sprintf(format, args...)
	case missed != "":
		f.Text += "; not all was seen: " + missed
	}
	return f
}

// joinFixes makes one line: commands that a shell runs one after the other, or words.
func joinFixes(fixes []string) string {
	words := slices.ContainsFunc(fixes, func(f string) bool { return !strings.HasPrefix(f, "aws ") })
	if words {
		return strings.Join(fixes, "; ")
	}
	return strings.Join(fixes, " && ")
}

// span is a duration in days and what remains, exactly.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	days, rest := d/day, d%day
	text := ""
	if days > 0 {
		text = fmt.Sprintf("%dd", days)
	}
	if rest == 0 && days > 0 {
		return text
	}
	short := rest.String()
	if strings.HasSuffix(short, "m0s") {
		short = strings.TrimSuffix(short, "0s")
	}
	if strings.HasSuffix(short, "h0m") {
		short = strings.TrimSuffix(short, "0m")
	}
	return strings.TrimSpace(text + " " + short)
}
