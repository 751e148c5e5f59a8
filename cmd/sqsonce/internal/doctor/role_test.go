package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
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

// protectTable gives the table what a production table has.
func (a *account) protectTable() {
	a.Helper()
	ctx, table := context.Background(), aws.String("dedup")
	protect := func(on bool) {
		_, err := a.stack.DynamoDB.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: table, DeletionProtectionEnabled: &on})
		a.must(err)
	}
	protect(true)
	a.Cleanup(func() { protect(false) })
	_, err := a.stack.DynamoDB.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: table, PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	a.must(err)
}

func (a *account) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
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
		if f.Verdict != Skip && (f.Verdict == OK) != (f.Fix == "") {
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

func (a *account) paste(fix string) {
	a.Helper()
	paste(a.TB.(*testing.T), a.clients, fix)
}
