package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce/internal/must"
)

const (
	roleARN   = "arn:aws:iam::000000000000:role/service/billing"
	callerARN = "arn:aws:sts::000000000000:assumed-role/operators/ann"
)

// role is that of the consumer in an account's IAM. Its inline policies allow actions on resources, by name.
type role struct {
	policies    map[string]string
	denied      []string // actions that a statement denies
	conditional []string // actions that are allowed under a condition
	silent      bool     // the simulation says nothing about any action
}

// rolePolicy is what a consumer of the queue needs, and no more.
func rolePolicy(queue, dlq string) string {
	return `{"Version": "2012-10-17", "Statement": [
		{"Effect": "Allow", "Action": ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"], "Resource": "` + queueARN(queue) + `"},
		{"Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": "` + queueARN(dlq) + `"},
		{"Effect": "Allow", "Action": ["dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"],
		 "Resource": "arn:aws:dynamodb:us-east-1:000000000000:table/dedup"}]}`
}

// without takes actions out of the role's policy.
func (r *role) without(actions ...string) {
	for _, a := range actions {
		r.policies["consumer"] = strings.ReplaceAll(r.policies["consumer"], `"`+a+`"`, `"none:None"`)
	}
}

func (r *role) allows(action, resource string) bool {
	for _, document := range r.policies {
		var p struct {
			Statement []struct {
				Effect   string
				Action   []string
				Resource string
			}
		}
		if err := json.Unmarshal([]byte(document), &p); err != nil {
			panic(err)
		}
		for _, s := range p.Statement {
			if s.Effect == "Allow" && s.Resource == resource && slices.Contains(s.Action, action) {
				return true
			}
		}
	}
	return false
}

// simulate answers with a page for each action.
func (r *role) simulate(in *iam.SimulatePrincipalPolicyInput) (*iam.SimulatePrincipalPolicyOutput, error) {
	if !strings.HasSuffix(*in.PolicySourceArn, "/billing") {
		return nil, &iamtypes.NoSuchEntityException{Message: aws.String("no role " + *in.PolicySourceArn)}
	}
	out := &iam.SimulatePrincipalPolicyOutput{}
	if r.silent {
		return out, nil
	}
	n, _ := strconv.Atoi(aws.ToString(in.Marker))
	action := in.ActionNames[n]
	result := iamtypes.EvaluationResult{EvalActionName: &action, EvalResourceName: &in.ResourceArns[0], EvalDecision: iamtypes.PolicyEvaluationDecisionTypeImplicitDeny}
	switch {
	case slices.Contains(r.denied, action):
		result.EvalDecision = iamtypes.PolicyEvaluationDecisionTypeExplicitDeny
	case slices.Contains(r.conditional, action):
		result.ResourceSpecificResults = []iamtypes.ResourceSpecificResult{{
			EvalResourceName: &in.ResourceArns[0], EvalResourceDecision: result.EvalDecision, MissingContextValues: []string{"aws:SourceVpce"},
		}}
	case r.allows(action, in.ResourceArns[0]):
		result.EvalDecision = iamtypes.PolicyEvaluationDecisionTypeAllowed
	}
	out.EvaluationResults = []iamtypes.EvaluationResult{result}
	if n+1 < len(in.ActionNames) {
		out.IsTruncated, out.Marker = true, aws.String(strconv.Itoa(n+1))
	}
	return out, nil
}

// fakeIAM gives the account the role that a consumer of the queue needs, and a caller.
func (a *account) fakeIAM(queue string) {
	a.role = &role{policies: map[string]string{"consumer": rolePolicy(queue, a.dlq())}}
	answer(a.iam, a.role.simulate)
	answer(a.iam, func(in *iam.PutRolePolicyInput) (*iam.PutRolePolicyOutput, error) {
		if *in.RoleName != "billing" || !json.Valid([]byte(*in.PolicyDocument)) {
			return nil, fmt.Errorf("role %s, policy %s", *in.RoleName, *in.PolicyDocument)
		}
		a.role.policies[*in.PolicyName] = *in.PolicyDocument
		return &iam.PutRolePolicyOutput{}, nil
	})
	answer(a.sts, func(*sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
		return &sts.GetCallerIdentityOutput{Arn: aws.String(callerARN)}, nil
	})
}

func (a *account) updateTable(in *dynamodb.UpdateTableInput) {
	a.Helper()
	in.TableName = aws.String("dedup")
	must.Get(a.stack.DynamoDB.UpdateTable(context.Background(), in))(a)
}

// all returns all findings, each of an ID.
func (a *account) all() []Finding {
	return Examine(context.Background(), a.clients, a.deployment)
}

// only checks that this check alone is not ok, and returns its finding.
func (a *account) only(id string, want Verdict) (found Finding) {
	a.Helper()
	for _, f := range a.all() {
		switch {
		case f.ID == id:
			found = f
			if f.Verdict != want {
				a.Errorf("%s: want %s", f, want)
			}
		case f.Verdict != OK:
			a.Errorf("%s: want ok", f)
		}
		if f.Verdict != Unknown && (f.Verdict == OK) != (f.Fix == "") {
			a.Errorf("%s, fix %q", f, f.Fix)
		}
	}
	if found.ID == "" {
		a.Errorf("no finding %s", id)
	}
	return found
}

// well checks that all is ok.
func (a *account) well() {
	a.Helper()
	for _, f := range a.all() {
		if f.Verdict != OK || f.Fix != "" {
			a.Errorf("%s, fix %q", f, f.Fix)
		}
	}
}

// of returns the finding of a check.
func (a *account) of(id string) Finding {
	a.Helper()
	f, ok := a.examine()[id]
	if !ok {
		a.Fatalf("no finding %s", id)
	}
	return f
}

// says checks the verdict of a check, and a part of its text.
func (a *account) says(id string, want Verdict, text string) {
	a.Helper()
	if f := a.of(id); f.Verdict != want || !strings.Contains(f.Text, text) {
		a.Errorf("%s: want %s with %q", f, want, text)
	}
}

func (a *account) paste(fix string) {
	a.Helper()
	paste(a.TB.(*testing.T), a.clients, fix)
}

// fake answers calls of an SDK client in AWS's place. It is middleware: it sees inputs, once the SDK has checked them, and returns
// outputs, both with the SDK's types. What it has no answer for goes on to a server, or fails if there is none.
type fake struct {
	server bool

	mu       sync.Mutex
	answers  map[string]func(any) (any, error)
	alters   map[string]func(any)
	refusals map[string]func(any) error // by input; nil: not refused
	calls    []string                   // operations, in their order
}

func newFake(server bool) *fake {
	return &fake{
		server: server, answers: map[string]func(any) (any, error){}, alters: map[string]func(any){}, refusals: map[string]func(any) error{},
	}
}

// answer sets the answer to the operation whose input and output these are.
func answer[I, O any](f *fake, do func(*I) (*O, error)) {
	f.set(strings.TrimSuffix(reflect.TypeFor[I]().Name(), "Input"), func(in any) (any, error) { return do(in.(*I)) })
}

func (f *fake) set(operation string, do func(any) (any, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[operation] = do
}

// alter changes each output of an operation.
func alter[O any](f *fake, do func(*O)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alters[strings.TrimSuffix(reflect.TypeFor[O]().Name(), "Output")] = func(out any) { do(out.(*O)) }
}

// refuse makes an operation fail where the function returns an error.
func (f *fake) refuse(operation string, with func(in any) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals[operation] = with
}

// deny refuses operations, as AWS does where no policy allows them.
func (f *fake) deny(operations ...string) {
	for _, o := range operations {
		f.refuse(o, func(any) error { return denial(o) })
	}
}

func denial(operation string) error {
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized to perform: " + operation}
}

// add is one of a client's APIOptions.
func (f *fake) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("fake", f.call), middleware.After)
}

func (f *fake) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput,
	middleware.Metadata, error) {
	operation := strings.TrimSuffix(reflect.TypeOf(in.Parameters).Elem().Name(), "Input")
	f.mu.Lock()
	f.calls = append(f.calls, operation)
	do, change, refused := f.answers[operation], f.alters[operation], f.refusals[operation]
	f.mu.Unlock()
	if refused != nil {
		if err := refused(in.Parameters); err != nil {
			return middleware.InitializeOutput{}, middleware.Metadata{}, err
		}
	}
	var out middleware.InitializeOutput
	var md middleware.Metadata
	var err error
	switch {
	case do != nil:
		out.Result, err = do(in.Parameters)
	case f.server:
		out, md, err = next.HandleInitialize(ctx, in)
	default:
		err = errors.New("the fake has no answer to " + operation)
	}
	if err == nil && change != nil {
		change(out.Result)
	}
	return out, md, err
}

// config is that of clients of a fake without a server.
func (f *fake) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: aws.AnonymousCredentials{},
		APIOptions: []func(*middleware.Stack) error{f.add},
	}
}

// notFound is AWS's answer for what does not exist.
func notFound(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ResourceNotFoundException", Message: fmt.Sprintf(format, args...)}
}
