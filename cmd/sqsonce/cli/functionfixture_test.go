package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	eventbridge "github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go/middleware"
)

const (
	account    = "us-east-1:000000000000"
	switchBack = "arn:aws:iam::000000000000:role/switch-back"
	updateESM  = "arn:aws:scheduler:::aws-sdk:lambda:updateEventSourceMapping"
)

// functionAPI is Lambda's mappings, EventBridge Scheduler and IAM's simulation, with their states.
type functionAPI struct {
	mu        sync.Mutex
	mappings  []*fakeMapping
	schedules map[string]*fakeSchedule
	ahead     time.Duration // how much AWS's clock is ahead of the computer's
	takes     time.Duration // until a mapping is on or off
	noRole    bool          // the role of the schedules may not switch mappings on, which shows when they fire
	simulated iamtypes.PolicyEvaluationDecisionType

	calls []string // "UpdateSchedule"
	// before and after are called with each call and its number, from 1. An error of before is in place of the call, one of after in
	// place of its answer.
	before, after func(n int, call string) error
}

type fakeMapping struct {
	UUID, EventSourceArn, FunctionArn string
	State                             string
	ProvisionedPollerConfig           map[string]int `json:",omitempty"`
	until                             time.Time      // when State, which is on the way, is reached
	to                                string
}

type fakeSchedule struct {
	Description, ScheduleExpression, ScheduleExpressionTimezone, State, ActionAfterCompletion string
	Target                                                                                    struct{ Arn, RoleArn, Input string }
	fires                                                                                     time.Time
	done                                                                                      bool
}

// functions gives the world a function "billing" with a mapping from each queue.
func (w *world) functions(queues ...string) *functionAPI {
	f := &functionAPI{schedules: map[string]*fakeSchedule{}, takes: 5 * time.Second, simulated: iamtypes.PolicyEvaluationDecisionTypeAllowed}
	for i, queue := range queues {
		f.mappings = append(f.mappings, &fakeMapping{
			UUID: fmt.Sprintf("1f0c2f6e-0000-4000-8000-00000000000%d", i+1), EventSourceArn: "arn:aws:sqs:" + account + ":" + queue,
			FunctionArn: "arn:aws:lambda:" + account + ":function:billing", State: "Enabled",
		})
	}
	w.lambda = f
	return f
}

// into sets the clients.
func (f *functionAPI) into(s *services) {
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
	})
	s.lambda = lambda.New(lambda.Options{Region: s.region, Credentials: credentials, HTTPClient: f})
	s.scheduler = eventbridge.New(eventbridge.Options{Region: s.region, Credentials: credentials, HTTPClient: f})
	s.iam = iam.New(iam.Options{Region: s.region, APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("answer", f.simulate), middleware.After)
	}}})
}

func (f *functionAPI) simulate(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
	asked := in.Parameters.(*iam.SimulatePrincipalPolicyInput)
	if f.simulated == "" {
		return out, md, errors.New("denied to this operator")
	}
	out.Result = &iam.SimulatePrincipalPolicyOutput{EvaluationResults: []iamtypes.EvaluationResult{{EvalActionName: &asked.ActionNames[0], EvalDecision: f.simulated}}}
	return out, md, nil
}

func (f *functionAPI) now() time.Time { return time.Now().Add(f.ahead).UTC() }

// Do answers a request of Lambda or Scheduler.
func (f *functionAPI) Do(r *http.Request) (*http.Response, error) {
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	call := map[string]string{
		"GET event-source-mappings": "GetEventSourceMapping", "PUT event-source-mappings": "UpdateEventSourceMapping",
		"GET schedules": "GetSchedule", "POST schedules": "CreateSchedule", "PUT schedules": "UpdateSchedule",
	}[r.Method+" "+part[len(part)-2]]
	if part[len(part)-1] == "event-source-mappings" {
		call = "ListEventSourceMappings"
	}
	f.mu.Lock()
	f.calls = append(f.calls, call)
	n := len(f.calls)
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(n, call); err != nil {
			return f.answer(err)
		}
	}
	if signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date")); err != nil || f.now().Sub(signed).Abs() > 5*time.Minute {
		return f.answer(refused{403, "InvalidSignatureException", "Signature expired"})
	}
	body, err := io.ReadAll(cmp.Or[io.Reader](r.Body, strings.NewReader("")))
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.advance()
	out, err := f.act(call, part[len(part)-1], body)
	date := f.now().Format(http.TimeFormat)
	f.mu.Unlock()
	if f.after != nil {
		if failed := f.after(n, call); failed != nil {
			err = failed
		}
	}
	if err != nil {
		return f.answer(err)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Date", date)
	if err := json.NewEncoder(w).Encode(out); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// refused is an error of AWS.
type refused struct {
	status        int
	code, message string
}

func (r refused) Error() string { return r.code }

// answer answers with an error. One that is not AWS's is no answer.
func (f *functionAPI) answer(err error) (*http.Response, error) {
	r, ok := errors.AsType[refused](err)
	if !ok {
		return nil, err
	}
	w := httptest.NewRecorder()
	w.Header().Set("Date", f.now().Format(http.TimeFormat))
	w.Header().Set("X-Amzn-Errortype", r.code)
	w.WriteHeader(r.status)
	fmt.Fprintf(w, `{"message":%q,"Message":%q}`, r.message, r.message)
	return w.Result(), nil
}

// advance does what time has brought: schedules fire, mappings reach their states.
func (f *functionAPI) advance() {
	for _, m := range f.mappings {
		if m.to != "" && !f.now().Before(m.until) {
			m.State, m.to = m.to, ""
		}
	}
	for _, s := range f.schedules {
		if s.done || f.now().Before(s.fires) || s.State != "ENABLED" {
			continue
		}
		var in struct {
			Uuid    string
			Enabled bool
		}
		if s.Target.Arn != updateESM || json.Unmarshal([]byte(s.Target.Input), &in) != nil || f.noRole {
			s.done = true
			continue
		}
		s.done = f.update(in.Uuid, in.Enabled) == nil // else Scheduler tries again
	}
}

func (f *functionAPI) mapping(uuid string) *fakeMapping {
	for _, m := range f.mappings {
		if m.UUID == uuid {
			return m
		}
	}
	return nil
}

func (f *functionAPI) update(uuid string, enabled bool) error {
	m := f.mapping(uuid)
	switch {
	case m == nil:
		return refused{404, "ResourceNotFoundException", "no such mapping"}
	case m.to != "":
		return refused{409, "ResourceConflictException", "another operation is in progress"}
	case enabled && m.State == "Disabled":
		m.State, m.to, m.until = "Enabling", "Enabled", f.now().Add(f.takes)
	case !enabled && m.State == "Enabled":
		m.State, m.to, m.until = "Disabling", "Disabled", f.now().Add(f.takes)
	}
	return nil
}

func (f *functionAPI) act(call, name string, body []byte) (any, error) {
	switch call {
	case "ListEventSourceMappings":
		return map[string]any{"EventSourceMappings": f.mappings}, nil
	case "GetEventSourceMapping":
		return f.mapping(name), nil
	case "UpdateEventSourceMapping":
		var in map[string]any
		if err := json.Unmarshal(body, &in); err != nil || len(in) != 1 {
			return nil, refused{400, "InvalidParameterValueException", "changes more than Enabled"}
		}
		return f.mapping(name), f.update(name, in["Enabled"].(bool))
	case "GetSchedule":
		if s := f.schedules[name]; s != nil {
			return s, nil
		}
		return nil, refused{404, "ResourceNotFoundException", "no such schedule"}
	case "CreateSchedule", "UpdateSchedule":
		if exists := f.schedules[name] != nil; exists == (call == "CreateSchedule") {
			return nil, refused{409, "ConflictException", "exists, or not"}
		}
		s := &fakeSchedule{}
		if err := json.Unmarshal(body, s); err != nil {
			return nil, err
		}
		var err error
		if s.fires, err = time.Parse("at(2006-01-02T15:04:05)", s.ScheduleExpression); err != nil {
			return nil, refused{400, "ValidationException", "the expression"}
		}
		if !strings.HasSuffix(s.Target.RoleArn, ":role/switch-back") {
			return nil, refused{400, "ValidationException", "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."}
		}
		f.schedules[name] = s
		return map[string]any{"ScheduleArn": "arn:aws:scheduler:" + account + ":schedule/default/" + name}, nil
	}
	return nil, fmt.Errorf("no answer to %s", call)
}

// states are those of the mappings now.
func (f *functionAPI) states() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance()
	for _, m := range f.mappings {
		all = append(all, m.State)
	}
	return all
}

// pass lets time pass, and a schedule that has fired switch its mapping.
func (f *functionAPI) pass(d time.Duration) {
	time.Sleep(d)
	f.states()
	time.Sleep(f.takes + time.Second)
}
