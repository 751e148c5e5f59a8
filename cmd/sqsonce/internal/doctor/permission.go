package doctor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
)

func permissionChecks() []check {
	return []check{
		{[]string{"I1"}, checkCaller},
		{[]string{"I2"}, checkRole},
		{[]string{"I3"}, probe},
	}
}

// A consumer's actions: those of the README's table. sqs:GetQueueUrl is not asked for: without it hosts make the URL from the ARN,
// and a host that is given the URL does not call it.
var (
	queueActions      = []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"}
	deadLetterActions = []string{"sqs:SendMessage"}
	recordActions     = []string{"dynamodb:UpdateItem"}
	// Without these the store sends each write singly.
	batchActions = []string{"dynamodb:GetItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"}
)

// checkCaller is I1.
func checkCaller(ctx context.Context, e *examination) []Finding {
	r := report{id: "I1"}
	out, err := e.identity(ctx)
	if api, ok := errors.AsType[smithy.APIError](err); ok && awserr.Unidentified(err) {
		r.fail("set valid credentials, for example by aws sso login or AWS_PROFILE. If they are valid, see C1",
			"AWS refuses the credentials: %s: %s", api.ErrorCode(), api.ErrorMessage())
	} else if err != nil {
		return []Finding{unseen(r.id, err)}
	} else if aws.ToString(out.Arn) == "" {
		r.miss(errors.New("sts:GetCallerIdentity: the answer has no ARN"))
	}
	if err != nil {
		return []Finding{r.finding("")}
	}
	return []Finding{r.finding("the caller is %s", aws.ToString(out.Arn))}
}

// grant is what a role needs on one resource.
type grant struct {
	what, arn string // "queue orders"
	actions   []string
	required  bool // without them the consumer fails; else it is slower
}

// checkRole is I2.
func checkRole(ctx context.Context, e *examination) []Finding {
	if e.Role == "" && e.Function == "" {
		return nil
	}
	role := e.Role
	if role == "" {
		configuration, err := e.configuration(ctx)
		if err != nil {
			return []Finding{unseen("I2", err)}
		}
		if role = aws.ToString(configuration.Role); role == "" {
			return []Finding{unseen("I2", fmt.Errorf("lambda:GetFunctionConfiguration: the answer about %s has no role", e.Function))}
		}
	}
	id, err := arn.Parse(role)
	kind, name, _ := strings.Cut(id.Resource, "/")
	r := report{id: "I2"}
	switch {
	case err == nil && id.Service == "sts" && kind == "assumed-role":
		name, _, _ = strings.Cut(name, "/")
		return []Finding{{
			ID: "I2", Verdict: Unknown, Text: fmt.Sprintf("could not look: %s is a session of the role %s, and the ARN of the role itself is needed", role, name),
			Fix: awsCommand("iam", "get-role", "--role-name", name, "--query", "Role.Arn", "--output", "text") + " prints what --role needs",
		}}
	case err != nil || id.Service != "iam" || kind != "role" || name == "":
		r.miss(fmt.Errorf("%q is not the ARN of a role, such as arn:aws:iam::111122223333:role/orders", role))
		return []Finding{r.finding("")}
	case e.IAM == nil:
		return []Finding{unseen("I2", errNoClient)}
	}
	return []Finding{e.simulate(ctx, role, name[strings.LastIndex(name, "/")+1:])} // without its path
}

// grants returns what a consumer needs on what there is of the deployment. What has an unknown ARN is missed.
func (e *examination) grants(ctx context.Context, r *report) (grants []grant) {
	if e.QueueURL != "" {
		if q, err := e.queue(ctx); err != nil {
			r.miss(err)
		} else {
			grants = append(grants, grant{"queue " + q.name, q.arn, queueActions, true})
		}
		if dead, _, err := e.redrive(ctx); err == nil {
			grants = append(grants, grant{"queue " + dead.Name, dead.String(), deadLetterActions, true})
		} else if !errors.Is(err, errNoDLQ) {
			r.miss(err)
		}
	}
	if e.Table != "" {
		if t, err := e.described(ctx); err != nil {
			r.miss(err)
		} else {
			name, id := "table "+aws.ToString(t.TableName), aws.ToString(t.TableArn)
			grants = append(grants, grant{name, id, recordActions, true}, grant{name, id, batchActions, false})
		}
	}
	return grants
}

// refusals is what simulations have denied: by a Deny, for want of an Allow, or by a condition on what only a real request has.
type refusals struct {
	denied, missing, conditional []string
	keys                         []string          // that the conditional ones depend on
	statements                   []policyStatement // that allow what is missing
	required                     bool              // one of the first two is
}

type policyStatement struct {
	Effect   string
	Action   []string
	Resource string
}

const simulated = "by its own policies and boundary: those of queues, keys and endpoints are not asked"

func (e *examination) simulate(ctx context.Context, role, name string) Finding {
	r := report{id: "I2"}
	var refused refusals
	asked := 0
	for _, g := range e.grants(ctx, &r) {
		asked += len(g.actions)
		err := e.simulateGrant(ctx, role, g, &refused)
		if _, missing := errors.AsType[*iamtypes.NoSuchEntityException](err); missing {
			r.fail(awsCommand("iam", "list-roles", "--query", "Roles[].Arn")+" prints those that exist", "role %s does not exist", role)
			return r.finding("")
		}
		r.miss(err)
	}
	if lacking := strings.Join(slices.Concat(refused.missing, refused.denied), ", "); lacking != "" {
		if fix := fixRole(name, refused); refused.required {
			r.fail(fix, "role %s lacks %s, %s", name, lacking, simulated)
		} else {
			r.warn(fix, "role %s lacks %s, so that each write is a request of its own, %s", name, lacking, simulated)
		}
	}
	if len(refused.conditional) > 0 {
		slices.Sort(refused.keys)
		keys := strings.Join(slices.Compact(refused.keys), ", ")
		r.warn("see whether the role's statements with these conditions allow it; sqsonce doctor --probe with the role's credentials tests a part of them",
			"role %s has %s only if conditions on %s allow it, which a simulation does not know", name, strings.Join(refused.conditional, ", "), keys)
	}
	if asked == 0 {
		r.miss(fmt.Errorf("what role %s needs depends on --queue and --table", name))
	}
	return r.finding("role %s has the %d actions of a consumer, %s", name, asked, simulated)
}

func (e *examination) simulateGrant(ctx context.Context, role string, g grant, r *refusals) error {
	pages := iam.NewSimulatePrincipalPolicyPaginator(e.IAM, &iam.SimulatePrincipalPolicyInput{
		PolicySourceArn: &role, ActionNames: g.actions, ResourceArns: []string{g.arn},
	})
	decided := map[string]bool{}
	lacking := policyStatement{Effect: "Allow", Resource: g.arn}
	for n := 0; pages.HasMorePages() && n < mostPages; n++ {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, result := range page.EvaluationResults {
			action := aws.ToString(result.EvalActionName)
			decided[action] = true
			text := action + " on " + g.what
			unknown := slices.Clone(result.MissingContextValues)
			for _, of := range result.ResourceSpecificResults { // where they are for a resource that is named
				unknown = append(unknown, of.MissingContextValues...)
			}
			switch {
			case result.EvalDecision == iamtypes.PolicyEvaluationDecisionTypeAllowed:
				continue
			case len(unknown) > 0:
				r.conditional, r.keys = append(r.conditional, text), append(r.keys, unknown...)
				continue
			case result.EvalDecision == iamtypes.PolicyEvaluationDecisionTypeExplicitDeny:
				r.denied = append(r.denied, text+" (denied by a statement)")
			default:
				r.missing = append(r.missing, text)
				lacking.Action = append(lacking.Action, action)
			}
			r.required = r.required || g.required
		}
	}
	if len(lacking.Action) > 0 {
		r.statements = append(r.statements, lacking)
	}
	for _, action := range g.actions {
		if !decided[action] {
			return fmt.Errorf("iam:SimulatePrincipalPolicy says nothing about %s on %s", action, g.what)
		}
	}
	return nil
}

func fixRole(name string, r refusals) string {
	if len(r.denied) > 0 {
		return fmt.Sprintf("an Allow does not outweigh a Deny: find the statement that denies it in the policies of role %s, in its boundary, or in those of the organization", name)
	}
	policy := asJSON(struct {
		Version   string
		Statement []policyStatement
	}{"2012-10-17", r.statements})
	// Another policy has another name: a fix does not overwrite the one before it.
	sum := sha256.Sum256([]byte(policy))
	return awsCommand("iam", "put-role-policy", "--role-name", name, "--policy-name", fmt.Sprintf("sqsonce-%x", sum[:4]), "--policy-document", policy)
}
