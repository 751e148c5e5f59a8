package doctor

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// These tests are of the checks of queues, functions and alarms.
func queueSideChecks() []check { return slices.Concat(queueChecks(), functionChecks(), alarmChecks()) }

var queueSide = []string{"Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9", "L1", "L2", "L3", "L4", "L5", "A1"}

// defect is a deployment in which one check alone is not ok.
type defect struct {
	name    string
	id      string
	verdict Verdict
	text    string // that the finding has
	fifo    bool
	spoil   func(*account)
	also    []string       // IDs that are skipped or do not apply because of it
	words   string         // a part of the fix, where that is no command
	before  func(*account) // is done before the fix: what a person does, or the end of a lie
}

// TestDefects spoils a healthy deployment in one thing. One check finds it, no other is wrong, and its fix, pasted into a shell, makes
// all checks ok again.
func TestDefects(t *testing.T) {
	t.Parallel()
	seen := map[string]map[Verdict]bool{}
	for _, d := range slices.Concat(queueDefects, crashDefects, deadLetterDefects, functionDefects, durableDefects, alarmDefects) {
		if seen[d.id] == nil {
			seen[d.id] = map[Verdict]bool{}
		}
		seen[d.id][d.verdict] = true
		must.Run(t, d.id+"/"+d.name, d.run)
	}
	for _, id := range queueSide {
		if !seen[id][Warn] && !seen[id][Fail] {
			t.Errorf("no defect of %s", id)
		}
	}
}

func (d *defect) run(t *testing.T) {
	queue := "orders"
	if d.fifo {
		queue += ".fifo"
	}
	a := healthy(t, queue)
	d.spoil(a)
	found := a.examine(queueSideChecks()...)
	for id, f := range found {
		switch {
		case id == d.id:
		case f.Verdict == OK, f.Verdict == Unknown && slices.Contains(d.also, id):
		default:
			t.Errorf("beside it: %s", f)
		}
	}
	f := found[d.id]
	if f.Verdict != d.verdict || !strings.Contains(f.Text, d.text) || f.Fix == "" {
		t.Fatalf("got %s, fix %q; want %s with %q", f, f.Fix, d.verdict, d.text)
	}
	if d.before != nil {
		d.before(a)
	}
	if d.words != "" {
		if !strings.Contains(f.Fix, d.words) {
			t.Errorf("fix %q has no %q", f.Fix, d.words)
		}
		return
	}
	paste(t, a.clients, f.Fix)
	for id, f := range a.examine(queueSideChecks()...) {
		if f.Verdict != OK {
			t.Errorf("after the fix of %s: %s, fix %q", d.id, id+" "+f.String(), f.Fix)
		}
	}
}

// String is how tests show a finding.
func (f Finding) String() string {
	return strings.TrimSpace(f.ID + " " + string(f.Verdict) + " " + f.Text)
}

// elsewhere is a service whose clock differs from this host's, or is in no header.
type elsewhere struct {
	to interface {
		Do(*http.Request) (*http.Response, error)
	}
	ahead time.Duration
	drop  bool
	age   bool
}

func (e *elsewhere) Do(req *http.Request) (*http.Response, error) {
	resp, err := e.to.Do(req)
	if err == nil {
		resp.Header.Set("Date", time.Now().Add(e.ahead).UTC().Format(http.TimeFormat))
		if e.drop {
			resp.Header.Del("Date")
		}
		if e.age {
			resp.Header.Set("Age", "1")
		}
	}
	return resp, err
}

func (a *account) through(e *elsewhere) {
	a.clients.SQS = sqs.New(a.clients.SQS.Options(), func(o *sqs.Options) { e.to, o.HTTPClient = o.HTTPClient, e })
}

func TestClock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		by      elsewhere
		verdict Verdict
		says    string
	}{
		"right":        {elsewhere{}, OK, "within a second or two"},
		"a bit":        {elsewhere{ahead: -1900 * time.Millisecond}, OK, ""},
		"ahead":        {elsewhere{ahead: -10 * time.Second}, Warn, "ahead of that of SQS"},
		"behind":       {elsewhere{ahead: 10 * time.Second}, Warn, "behind that of SQS"},
		"nearly":       {elsewhere{ahead: 238 * time.Second}, Warn, "behind"},
		"far ahead":    {elsewhere{ahead: -10 * time.Minute}, Fail, "ahead of that of SQS: AWS refuses"},
		"far behind":   {elsewhere{ahead: 10 * time.Minute}, Fail, "behind that of SQS: AWS refuses"},
		"no Date":      {elsewhere{drop: true}, Unknown, "have no Date"},
		"from a cache": {elsewhere{ahead: -time.Hour, age: true}, Unknown, "have no Date"},
	} {
		run(t, name, func(a *account) {
			a.through(&test.by)
			if f := a.only("C1", test.verdict); !strings.Contains(f.Text, test.says) {
				a.Errorf("%s: want %q", f, test.says)
			}
			if f := a.of("C2"); f.Verdict != OK || !strings.HasPrefix(f.Text, "SQS answers in ") || !strings.HasSuffix(f.Text, "of 5 requests") {
				a.Error(f)
			}
		})
	}
}

// The difference is never overstated, however slow the answer was.
func TestAhead(t *testing.T) {
	t.Parallel()
	date := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct{ sent, received, want time.Duration }{
		"right":              {100 * time.Millisecond, 200 * time.Millisecond, 0},
		"slow":               {-5 * time.Second, 5 * time.Second, 0},
		"ahead, slow":        {3 * time.Second, 30 * time.Second, 2 * time.Second},
		"behind, slow":       {-30 * time.Second, -3 * time.Second, -3 * time.Second},
		"behind by a second": {-time.Second, -time.Second, -time.Second},
		"end of the second":  {time.Second, time.Second, 0},
	} {
		s := sample{sent: date.Add(test.sent), received: date.Add(test.received), date: date}
		if got := s.ahead(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if f := clockFinding("SQS", []time.Duration{time.Minute, -3 * time.Second, 10 * time.Minute}); f.Verdict != Warn || !strings.Contains(f.Text, "at least 3s behind") {
		t.Error(f)
	}
}

// A denied call tells the time too, and no queue leaves the table's service.
func TestClockWithout(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.stack.MemSQS().Set(deniedPlan("GetQueueAttributes"))
	a.says("C1", OK, "")
	a = healthy(t, "orders")
	a.deployment = Deployment{Table: "dedup"}
	a.says("C2", OK, "DynamoDB answers in ")
	a = healthy(t, "orders")
	a.dynamodb.set("DescribeTable", func(any) (any, error) { return &dynamodb.DescribeTableOutput{}, nil })
	a.deployment = Deployment{Table: "dedup"}
	a.says("C1", Unknown, "no HTTP response")
}

func deniedPlan(op string) fault.Plan {
	return fault.Plan{Rules: []fault.Rule{{Op: op, Do: fault.Error, Code: "AccessDeniedException"}}}
}
