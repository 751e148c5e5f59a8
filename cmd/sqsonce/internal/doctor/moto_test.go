package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/transport/http/protocol/awsquery"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// deployTemplate deploys template.yaml to moto, with an alarm topic, and returns clients of it and the deployments of both functions.
// What moto lacks is answered by the fakes.
func deployTemplate(t *testing.T, stack string) (Clients, []Deployment) {
	t.Helper()
	moto := testserver.Moto.Shared(t).URL
	python := must.Get(testserver.Moto.Python())(t)
	file := must.Get(filepath.Abs("../../../../template.yaml"))(t)
	cmd := exec.Command(python, filepath.Join("testdata", "template.py"), file, stack, topic)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var made struct {
		Template json.RawMessage
		Alarms   []*cloudwatch.PutMetricAlarmInput
		Tables   map[string]tableSettings // by logical name
	}
	must.Do(t, json.Unmarshal(text, &made))
	createStack(t, moto, stack, string(made.Template))
	c := clientsOf(moto)
	for _, a := range made.Alarms {
		if _, err := c.CloudWatch.PutMetricAlarm(t.Context(), a); err != nil {
			t.Fatalf("%s: %v", *a.AlarmName, err)
		}
	}
	for logical, settings := range made.Tables {
		settings.set(t, c.DynamoDB, tableOf(t, c.DynamoDB, stack, logical))
	}
	of := func(queue, function string) Deployment {
		out := must.Get(c.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(stack + "-" + queue)}))(t)
		return Deployment{
			QueueURL: *out.QueueUrl, Function: stack + "-" + function, Table: tableOf(t, c.DynamoDB, stack, "DedupTable"), Consumer: "orders",
			LongestHandler: 600 * time.Second, // the template's LongestHandlerSeconds
		}
	}
	return c, []Deployment{of("orders", "OrdersFunction"), of("orders.fifo", "OrdersFifoFunction")}
}

// tableSettings are those of a table that CloudFormation sets and moto's does not.
type tableSettings struct {
	TimeToLiveSpecification          *ddbtypes.TimeToLiveSpecification
	PointInTimeRecoverySpecification *ddbtypes.PointInTimeRecoverySpecification
}

func (s tableSettings) set(t *testing.T, c *dynamodb.Client, table string) {
	t.Helper()
	if ttl := s.TimeToLiveSpecification; ttl != nil {
		must.Get(c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &table,
			TimeToLiveSpecification: ttl}))(t)
	}
	if r := s.PointInTimeRecoverySpecification; r != nil {
		must.Get(c.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{TableName: &table,
			PointInTimeRecoverySpecification: r}))(t)
	}
}

// tableOf is the name that CloudFormation has given a table.
func tableOf(t *testing.T, c *dynamodb.Client, stack, logical string) string {
	t.Helper()
	out := must.Get(c.ListTables(t.Context(), &dynamodb.ListTablesInput{}))(t)
	i := slices.IndexFunc(out.TableNames, func(name string) bool { return strings.HasPrefix(name, stack+"-"+logical+"-") })
	if i < 0 {
		t.Fatalf("no table %s of %s in %q", logical, stack, out.TableNames)
	}
	return out.TableNames[i]
}

func clientsOf(moto string) Clients {
	keys := func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
	}
	c := aws.Config{Region: "us-east-1", BaseEndpoint: &moto, Credentials: aws.CredentialsProviderFunc(keys)}
	tasks := newFake(true)
	answer(tasks, func(*sqs.ListMessageMoveTasksInput) (*sqs.ListMessageMoveTasksOutput, error) {
		return &sqs.ListMessageMoveTasksOutput{}, nil
	})
	simulation := newFake(true)
	answer(simulation, simulateIn(iam.NewFromConfig(c)))
	return Clients{
		SQS:      sqs.NewFromConfig(c, func(o *sqs.Options) { o.APIOptions = append(o.APIOptions, tasks.add) }),
		DynamoDB: dynamodb.NewFromConfig(c), Lambda: lambda.NewFromConfig(c),
		IAM: iam.NewFromConfig(c, func(o *iam.Options) { o.APIOptions = append(o.APIOptions, simulation.add) }),
		CloudWatch: cloudwatch.NewFromConfig(c, func(o *cloudwatch.Options) {
			o.Protocol = awsquery.New(schemas.GraniteServiceVersion20100801) // moto does not know CBOR
		}),
		STS: sts.NewFromConfig(c), HTTP: http.DefaultClient,
	}
}

// createStack calls CloudFormation, whose client is no dependency.
func createStack(t *testing.T, moto, stack, template string) {
	t.Helper()
	form := url.Values{"Action": {"CreateStack"}, "Version": {"2010-05-15"}, "StackName": {stack}, "TemplateBody": {template}}
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, moto, strings.NewReader(form.Encode())))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/cloudformation/aws4_request, SignedHeaders=host, Signature=0")
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("CreateStack: %s, %s, %v", resp.Status, answer, err)
	}
}

// The template as it is deployed passes, with all checks of what it deploys. It has no workers, and nobody asks for a probe.
func TestTemplate(t *testing.T) {
	t.Parallel()
	c, deployments := deployTemplate(t, "shop")
	want := []string{"Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q9", "L1", "L2", "L3", "L4", "T1", "T2", "T3", "T4", "T5", "I1", "I2", "C1", "C2", "A1"}
	for _, d := range deployments {
		var ids []string
		for _, f := range Examine(t.Context(), c, d) {
			if f.Verdict != OK {
				t.Errorf("%s, fix %q", f, f.Fix)
			}
			if f.ID != "Q8" {
				ids = append(ids, f.ID)
			} else if !strings.HasSuffix(d.QueueURL, ".fifo") {
				t.Errorf("%s of a standard queue", f)
			}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("findings %q, want %q", ids, want)
		}
	}
	// The roles are read, and not believed.
	d := deployments[0]
	role := roleOf(t, c, d.Function)
	paste(t, c, awsCommand("iam", "put-role-policy", "--role-name", role, "--policy-name", onlyPolicy(t, c.IAM, role), "--policy-document",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:GetQueueUrl","Resource":"*"}]}`))
	for _, f := range Examine(t.Context(), c, d) {
		if f.ID == "I2" && (f.Verdict != Fail || !strings.Contains(f.Text, "lacks sqs:ReceiveMessage on queue shop-orders, ")) {
			t.Errorf("without a policy: %s", f)
		}
	}
}

func roleOf(t *testing.T, c Clients, function string) string {
	t.Helper()
	out := must.Get(c.Lambda.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &function}))(t)
	return path.Base(*out.Role)
}

func onlyPolicy(t *testing.T, c *iam.Client, role string) string {
	t.Helper()
	out, err := c.ListRolePolicies(t.Context(), &iam.ListRolePoliciesInput{RoleName: &role})
	if err != nil || len(out.PolicyNames) != 1 {
		t.Fatal(out, err)
	}
	return out.PolicyNames[0]
}

// simulateIn answers SimulatePrincipalPolicy, which moto does not know, by the inline policies that a role has in moto.
func simulateIn(plain *iam.Client) func(*iam.SimulatePrincipalPolicyInput) (*iam.SimulatePrincipalPolicyOutput, error) {
	return func(in *iam.SimulatePrincipalPolicyInput) (*iam.SimulatePrincipalPolicyOutput, error) {
		ctx, role := context.Background(), path.Base(*in.PolicySourceArn)
		names, err := plain.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &role})
		if err != nil {
			return nil, err
		}
		allowed := map[string]bool{}
		for _, name := range names.PolicyNames {
			out, err := plain.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &role, PolicyName: &name})
			if err != nil {
				return nil, err
			}
			text, err := url.PathUnescape(*out.PolicyDocument)
			if err != nil {
				return nil, err
			}
			text = strings.ReplaceAll(text, "'", `"`) // moto's CloudFormation keeps a policy as Python writes it
			var policy struct {
				Statement []struct {
					Effect           string
					Action, Resource several
					Condition        any
				}
			}
			if err := json.Unmarshal([]byte(text), &policy); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
			for _, s := range policy.Statement {
				if s.Effect != "Allow" || s.Condition != nil {
					return nil, fmt.Errorf("a statement that this simulation does not know: %s", text)
				}
				for _, action := range s.Action {
					allowed[action] = allowed[action] || slices.Contains(s.Resource, in.ResourceArns[0])
				}
			}
		}
		out := &iam.SimulatePrincipalPolicyOutput{}
		for _, action := range in.ActionNames {
			r := iamtypes.EvaluationResult{EvalActionName: &action, EvalDecision: iamtypes.PolicyEvaluationDecisionTypeImplicitDeny}
			if allowed[action] {
				r.EvalDecision = iamtypes.PolicyEvaluationDecisionTypeAllowed
			}
			out.EvaluationResults = append(out.EvaluationResults, r)
		}
		return out, nil
	}
}

// several is a string or a list, as policies have it.
type several []string

func (s *several) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*s = several{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(s))
}

// Fixes are pasted into moto, which answers as others understand AWS. It forgets a RedriveAllowPolicy that is set later.
func TestFixesOnMoto(t *testing.T) {
	t.Parallel()
	c, deployments := deployTemplate(t, "mend")
	d := deployments[0]
	dlq := d.QueueURL + "-dlq"
	look := func() map[string]Finding {
		found := map[string]Finding{}
		for _, f := range examine(t.Context(), &examination{Clients: c.bounded(), Deployment: d}, queueSideChecks()) {
			found[f.ID] = f
		}
		return found
	}
	m, err := (&examination{Clients: c, Deployment: d}).mapping(t.Context())
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	set := func(url, name, value string) string {
		return awsCommand("sqs", "set-queue-attributes", "--queue-url", url, "--attributes", fmt.Sprintf(`{%q:%q}`, name, value))
	}
	for _, spoil := range []struct{ id, command string }{
		{"Q2", set(d.QueueURL, "RedrivePolicy", "")},
		{"Q4", set(dlq, "MessageRetentionPeriod", "3600")},
		{"Q7", set(d.QueueURL, "VisibilityTimeout", "3")},
		{"L1", updateMapping(m, "--no-enabled")},
		{"L3", awsCommand("lambda", "put-function-concurrency", "--function-name", d.Function, "--reserved-concurrent-executions", "5")},
		{"A1", awsCommand("cloudwatch", "delete-alarms", "--alarm-names", "mend-OrdersDLQAlarm", "mend-OrdersAgeAlarm",
			"mend-OrdersExpiringAlarm")},
		{"A1", awsCommand("cloudwatch", "disable-alarm-actions", "--alarm-names", "sqsonce-mend-orders-age")},
	} {
		paste(t, c, spoil.command)
		f := look()[spoil.id]
		if f.Verdict != Fail && f.Verdict != Warn {
			t.Errorf("%s after %s", f, spoil.command)
			continue
		}
		paste(t, c, f.Fix)
		for _, f := range look() {
			if f.Verdict != OK {
				t.Errorf("after the fix of %s: %s, fix %q", spoil.id, f, f.Fix)
			}
		}
	}
}
