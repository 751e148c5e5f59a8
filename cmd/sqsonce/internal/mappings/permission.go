package mappings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
)

// statement is one of an IAM policy.
type statement struct {
	Effect    string
	Action    string
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

func (s statement) String() string {
	s.Effect = "Allow"
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings
	}
	return string(text)
}

// allowing adds to an error of a call that was denied the statement that allows it.
func allowing(err error, action, resource string) error {
	if !awserr.Denied(err) || awserr.Unidentified(err) {
		return err
	}
	return fmt.Errorf("%w\n  allow it: %s", err, statement{Action: action, Resource: resource})
}

// ErrRole says that Scheduler cannot use the role of a schedule, or that the role cannot switch the mapping on.
var ErrRole = errors.New("EventBridge Scheduler cannot switch the mapping on by this role")

// refused explains why a schedule was not written.
func (s *Switch) refused(err error, action string, m Mapping, role string) error {
	if awserr.Action(err) == awserr.PassRole {
		return fmt.Errorf("%w\n  allow it: %s", err, statement{
			Action: awserr.PassRole, Resource: role, Condition: map[string]map[string]string{"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
		})
	}
	if invalid, ok := errors.AsType[*schedulertypes.ValidationException](err); ok && strings.Contains(invalid.ErrorMessage(), "role") {
		return fmt.Errorf("%w: role %s: %w\n  its trust policy needs: "+`{"Effect":"Allow","Principal":{"Service":"scheduler.amazonaws.com"},"Action":"sts:AssumeRole"}`, ErrRole, role, err)
	}
	return allowing(err, action, m.scheduleARN())
}

// CheckRole asks IAM whether a role may switch a mapping on. An error that is not ErrRole says that it is not known.
func CheckRole(ctx context.Context, client *iam.Client, role string, m Mapping) error {
	const action = "lambda:UpdateEventSourceMapping"
	out, err := client.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
		PolicySourceArn: &role, ActionNames: []string{action}, ResourceArns: []string{m.ARN()},
		ContextEntries: []iamtypes.ContextEntry{{
			ContextKeyName: aws.String("lambda:FunctionArn"), ContextKeyType: iamtypes.ContextKeyTypeEnumString, ContextKeyValues: []string{m.Function},
		}},
	})
	if _, missing := errors.AsType[*iamtypes.NoSuchEntityException](err); missing {
		return fmt.Errorf("%w: role %s does not exist", ErrRole, role)
	}
	if err != nil {
		return allowing(err, "iam:SimulatePrincipalPolicy", role)
	}
	if len(out.EvaluationResults) != 1 {
		return fmt.Errorf("iam:SimulatePrincipalPolicy says nothing about %s", action)
	}
	switch result := out.EvaluationResults[0]; {
	case result.EvalDecision == iamtypes.PolicyEvaluationDecisionTypeAllowed:
		return nil
	case len(result.MissingContextValues) > 0:
		return fmt.Errorf("role %s may switch it on only if %s is as a condition says", role, strings.Join(result.MissingContextValues, ", "))
	}
	return fmt.Errorf("%w: role %s needs %s", ErrRole, role, statement{Action: action, Resource: m.ARN()})
}
