package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

var examined = []string{"doctor", "--queue", "orders", "--function", "billing", "--table", "dedup"}

func denyDynamo(op string) fault.Plan {
	return fault.Plan{Rules: []fault.Rule{{Op: op, Do: fault.Error, Code: "AccessDeniedException"}}}
}

// noTTL is a FAIL of T2.
func (w *world) noTTL() {
	must.Get(w.stack.DynamoDB.UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("dedup"), TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{Enabled: aws.Bool(false), AttributeName: aws.String("expiration")},
	}))(w)
}

func TestGoldenDoctor(t *testing.T) {
	bubble(t, func(w *world) {
		d := w.deploy()
		w.golden("doctor-ok-pipe", w.run(examined...))
		w.noTTL()
		d.mapping.FunctionResponseTypes = nil
		d.mapping.ScalingConfig = nil
		w.stack.MemDynamoDB().Set(denyDynamo("DescribeContinuousBackups"))
		w.golden("doctor-pipe", w.run(examined...))
		w.golden("doctor-json", w.run(append(examined, "--json")...))
		w.width = 100
		w.golden("doctor-terminal", w.run(examined...))
	})
}

// The exit codes. A check that could not look is never ok.
func TestDoctorExitCodes(t *testing.T) {
	warned := func(w *world) {
		must.Get(w.stack.DynamoDB.UpdateTable(context.Background(), &dynamodb.UpdateTableInput{TableName: aws.String("dedup"), DeletionProtectionEnabled: aws.Bool(false)}))(w)
	}
	for name, test := range map[string]struct {
		change func(w *world)
		args   string
		code   exitCode
		says   string // standard error
		shows  string // standard output
	}{
		"all is ok":         {args: "--queue orders --function billing --table dedup --strict", says: " ok, 0 warnings, 0 failures, 0 unknown"},
		"a warning":         {change: warned, args: "--table dedup", says: "1 warning, 0 failures", shows: "warn\tT4\t"},
		"a warning, strict": {change: warned, args: "--table dedup --strict", code: exitFound, says: "1 warning, 0 failures", shows: "warn\tT4\t"},
		"a failure":         {change: (*world).noTTL, args: "--table dedup", code: exitFound, says: "0 warnings, 1 failure,", shows: "FAIL\tT2\t"},
		"one is unknown":    {change: func(w *world) { w.stack.MemDynamoDB().Set(denyDynamo("DescribeContinuousBackups")) }, args: "--table dedup --strict", code: exitDenied, says: "1 unknown", shows: "unknown\tT3\tdynamodb:DescribeContinuousBackups is denied\t\n"},
		"all are denied":    {change: func(w *world) { w.stack.MemDynamoDB().Set(denyDynamo("")) }, args: "--table dedup", code: exitDenied, says: "5 unknown\nsqsonce: not all was seen: permissions are missing"},
		"one is refused": {change: func(w *world) {
			w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "DescribeTimeToLive", Do: fault.Error, Code: "ValidationException"}}})
		}, args: "--table dedup", code: exitPart, says: "1 unknown\nsqsonce: not all was seen"},
		"nothing is named":   {code: exitUsage, says: "set --queue, --function"},
		"limits of what":     {args: "--queue orders --function f --limits both", code: exitUsage, says: `--limits is "both", must be fleet or process`},
		"no client of what":  {args: "--queue orders --function f --no-client", code: exitUsage, says: "set --limits"},
		"limits of whom":     {args: "--queue orders --limits fleet", code: exitUsage, says: "set --function"},
		"negative":           {args: "--table dedup --longest-handler -3s", code: exitUsage, says: "--longest-handler must not be negative"},
		"negative retention": {args: "--table dedup --retention -3s", code: exitUsage, says: "must not be negative"},
		"no worker's URL":    {args: "--worker ftp://x", code: exitUsage, says: "must be a URL"},
		"no such queue":      {args: "--queue lost --table dedup", code: exitFound, says: "1 failure", shows: "FAIL\tQ1\tqueue lost does not exist in us-east-1"},
		"another Region":     {args: "--queue arn:aws:sqs:eu-west-1:000000000000:orders", code: exitFound, shows: "FAIL\tQ1\tqueue arn:aws:sqs:eu-west-1:000000000000:orders is in eu-west-1"},
		"the URL is denied": {change: func(w *world) {
			w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueUrl", Do: fault.Error, Code: "AccessDenied"}}})
		}, args: "--queue orders", code: exitDenied, shows: "unknown\tQ1\tsqs:GetQueueUrl is denied\t\n"},
		"no connection": {change: func(w *world) {
			w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueUrl", Do: fault.Reset}}})
		}, args: "--queue orders --function billing", code: exitFound, says: "1 failure", shows: "FAIL\tQ1\tqueue orders is not reachable: sqs does not answer at http"},
		"a queue that has no URL": {change: func(w *world) {
			w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueUrl", Do: fault.Error, Code: "ThrottlingException"}}})
		}, args: "--queue orders --table dedup", code: exitPart, says: " unknown", shows: "unknown\tA1\tsqs:GetQueueUrl: Throttling"},
		"a URL that ends in a slash": {args: "--queue http://sqs.memory/000000000000/orders/", code: exitUsage, says: "must end in a queue's name"},
		"by environment":             {change: func(w *world) { w.env["SQSONCE_TABLE"] = "dedup" }, says: " ok, 0 warnings", shows: "ok\tT1\t"},
		"a store of its own": {change: func(w *world) {
			w.env["SQSONCE_TABLE"] = "dedup"
			w.opts.Store = func(context.Context) (Store, error) { return memstore.New(), nil }
		}, args: "--queue orders --function billing", says: " ok, 0 warnings, 0 failures, 0 unknown", shows: "ok\tS1\t"},
		"a store that refuses connections": {change: func(w *world) {
			w.opts.Store = func(context.Context) (Store, error) { return nil, errors.New("connection refused") }
		}, args: "--queue orders --strict", code: exitPart, says: "1 unknown", shows: "unknown\tS1\tcould not look: connection refused\t\n"},
		"a store that cannot be used": {change: func(w *world) {
			w.opts.Store = func(context.Context) (Store, error) {
				return nil, fmt.Errorf("%w: it evicts", sqsonce.ErrMisconfigured)
			}
		}, code: exitFound, shows: "FAIL\tS1\tthe store cannot be used: "},
		"not connected":       {change: func(w *world) { w.noAWS = fail(exitDenied, "no credentials") }, args: "--table dedup", code: exitDenied, says: "no credentials"},
		"workers without AWS": {change: func(w *world) { w.noAWS = fail(exitDenied, "no credentials") }, args: "--worker http://one", code: exitFound, says: "AWS is not asked: no credentials", shows: "FAIL\tW1\tno answer from http://one (connection refused)"},
		"it takes too long": {change: func(w *world) {
			w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Do: fault.Delay, Delay: 5 * time.Second}}})
		}, args: "--table dedup --timeout 2s", code: exitFailed, says: "deadline"},
		"the probe is no policy": {args: "--queue orders --table dedup --probe", says: "0 failures, 0 unknown", shows: "ok\tI3\tthe caller has sqs:DeleteMessage on queue orders\t\n"},
	} {
		run(t, name, func(w *world) {
			w.deploy()
			w.env = map[string]string{}
			if test.change != nil {
				test.change(w)
			}
			got := w.run(append([]string{"doctor"}, strings.Fields(test.args)...)...)
			w.stack.MemDynamoDB().Set(fault.Plan{}) // the world ends by calls
			if got.code != test.code || !strings.Contains(got.err, test.says) || !strings.Contains(got.out, test.shows) {
				w.Errorf("exit %d, want %d with %q and %q\n%s%s", got.code, test.code, test.says, test.shows, got.out, got.err)
			}
			if strings.Contains(got.out, "ok\tT") && w.opts.Store != nil {
				w.Error(got.out)
			}
		})
	}
}

// An interrupt ends it in part: what was found before is shown.
func TestDoctorInterrupted(t *testing.T) {
	bubble(t, func(w *world) {
		w.deploy()
		w.stack.MemDynamoDB().Set(fault.Plan{Rules: []fault.Rule{{Op: "DescribeTimeToLive", Do: fault.Delay, Delay: 5 * time.Second}}})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		got := w.runIn(ctx, "doctor", "--table", "dedup")
		if got.code != exitPart || !strings.Contains(got.out, "ok\tT1\t") || strings.Contains(got.out, "T2") {
			t.Errorf("%+v", got)
		}
	})
}

// What workers and AWS say is escaped, and JSON is one object.
func TestDoctorEscapes(t *testing.T) {
	bubble(t, func(w *world) {
		w.workers = map[string]func() statusreport.Report{"one": func() statusreport.Report {
			return statusreport.Report{V: 1, Name: "one", Started: time.Now().Add(-time.Hour), Now: time.Now(), Workers: []statusreport.Worker{{Queue: "orders\x1b[31m\u202e", NotReady: "\u009bbad\n"}}}
		}}
		for _, width := range []int{0, 80} {
			w.width = width
			got := w.run("doctor", "--worker", "http://one")
			if got.code != exitFound || !strings.Contains(got.out, `orders\x1b[31m\u202e (\u009bbad\n)`) || strings.ContainsAny(got.out, "\x1b\u202e\u009b") {
				t.Errorf("%q", got.out)
			}
		}
		got := w.run("doctor", "--worker", "http://one", "--json")
		var v diagnosis
		if err := json.Unmarshal([]byte(got.out), &v); err != nil || strings.Count(got.out, "\n") != 1 || v.V != 1 || v.Failures != 1 || len(v.Findings) != v.OK+v.Warnings+v.Failures+v.Unknown+v.Skipped {
			t.Errorf("%v: %s", err, got.out)
		}
	})
}

// deployment is what doctor sees beside SQS and DynamoDB: a function behind a mapping, its role, and alarms.
type deployment struct {
	w       *world
	mapping lambdatypes.EventSourceMappingConfiguration
	alarms  []cwtypes.MetricAlarm
}

const ordersARN = "arn:aws:sqs:us-east-1:000000000000:orders"

// deploy makes the world a deployment in which all checks are ok.
func (w *world) deploy() *deployment {
	w.Helper()
	attributes := func(queue string, attributes map[string]string) {
		must.Get(w.stack.SQS.SetQueueAttributes(context.Background(), &sqs.SetQueueAttributesInput{QueueUrl: aws.String(w.stack.QueueURL[queue]), Attributes: attributes}))(w)
	}
	attributes("orders", map[string]string{"VisibilityTimeout": "180"})
	attributes("orders-dlq", map[string]string{
		"MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["` + ordersARN + `"]}`,
	})
	testworld.ProtectTable(w, w.stack)
	w.deployed = &deployment{w: w, alarms: testworld.Alarms("orders", "orders-dlq"), mapping: testworld.Mapping("orders")}
	return w.deployed
}

// into sets the clients of the deployment.
func (d *deployment) into(s *services) {
	answered := func(service string) []func(*middleware.Stack) error {
		return []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("answered", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
				out.Result, err = d.answer(service, in.Parameters)
				return out, md, err
			}), middleware.After)
		}}
	}
	s.lambda = lambda.New(lambda.Options{Region: s.region, APIOptions: answered("lambda")})
	s.iam = iam.New(iam.Options{Region: s.region, APIOptions: answered("iam")})
	s.sts = sts.New(sts.Options{Region: s.region, APIOptions: answered("sts")})
	s.cloudwatch = cloudwatch.New(cloudwatch.Options{Region: s.region, APIOptions: answered("cloudwatch")})
}

func (d *deployment) answer(service string, in any) (any, error) {
	operation := strings.TrimSuffix(reflect.TypeOf(in).Elem().Name(), "Input")
	resource := "*"
	var out any
	switch in := in.(type) {
	case *lambda.ListEventSourceMappingsInput:
		out = &lambda.ListEventSourceMappingsOutput{EventSourceMappings: []lambdatypes.EventSourceMappingConfiguration{d.mapping}}
		if *in.EventSourceArn != ordersARN {
			out = &lambda.ListEventSourceMappingsOutput{EventSourceMappings: []lambdatypes.EventSourceMappingConfiguration{}}
		}
	case *lambda.GetFunctionConfigurationInput:
		resource = "billing"
		out = &lambda.GetFunctionConfigurationOutput{FunctionName: aws.String("billing"), FunctionArn: d.mapping.FunctionArn, Timeout: aws.Int32(30), Role: aws.String("arn:aws:iam::000000000000:role/billing")}
	case *lambda.GetFunctionConcurrencyInput:
		resource, out = "billing", &lambda.GetFunctionConcurrencyOutput{}
	case *iam.SimulatePrincipalPolicyInput:
		resource = "billing"
		simulated := &iam.SimulatePrincipalPolicyOutput{}
		for _, action := range in.ActionNames {
			simulated.EvaluationResults = append(simulated.EvaluationResults, iamtypes.EvaluationResult{EvalActionName: &action, EvalDecision: iamtypes.PolicyEvaluationDecisionTypeAllowed})
		}
		out = simulated
	case *sts.GetCallerIdentityInput: // needs no permission
		return &sts.GetCallerIdentityOutput{Arn: aws.String(callerARN)}, nil
	case *cloudwatch.DescribeAlarmsInput:
		out = &cloudwatch.DescribeAlarmsOutput{MetricAlarms: d.alarms}
	case *cloudwatch.GetMetricDataInput:
		out = &cloudwatch.GetMetricDataOutput{MetricDataResults: []cwtypes.MetricDataResult{{Id: in.MetricDataQueries[0].Id, StatusCode: cwtypes.StatusCodeComplete}}}
	default:
		return nil, fmt.Errorf("%s has no answer to %s", service, operation)
	}
	if d.w.calls.policy != "" {
		made.Lock()
		made.calls[d.w.calls.policy][service+":"+operation+" "+resource] = true
		made.Unlock()
	}
	return out, nil
}
