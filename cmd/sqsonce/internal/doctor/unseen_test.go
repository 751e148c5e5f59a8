package doctor

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// A check that was not allowed to look is unknown, names the action, and no other check is less than ok.
func TestDenied(t *testing.T) {
	t.Parallel()
	everything := []string{"Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q9", "L1", "L2", "L3", "L4", "L5", "L6", "A1"}
	for name, test := range map[string]struct {
		prepare func(*account)
		text    string
		skipped []string
	}{
		"queue": {func(a *account) { a.sqs.deny("GetQueueAttributes") }, "sqs:GetQueueAttributes is denied", everything},
		"DLQ":   {denyDLQ, "sqs:GetQueueAttributes is denied", []string{"Q3", "Q4", "Q5", "Q6"}},
		"tasks": {func(a *account) { a.sqs.deny("ListMessageMoveTasks") }, "sqs:ListMessageMoveTasks is denied", []string{"Q6"}},
		"mappings": {
			func(a *account) { a.lambda.deny("ListEventSourceMappings") }, "lambda:ListEventSourceMappings is denied", []string{"Q6", "Q7", "L1",
				"L2", "L3", "L4", "L5", "L6"},
		},
		"configuration": {func(a *account) { a.lambda.deny("GetFunctionConfiguration") }, "lambda:GetFunctionConfiguration is denied",
			[]string{"Q7", "L5", "L6"}},
		"concurrency": {func(a *account) { a.lambda.deny("GetFunctionConcurrency") }, "lambda:GetFunctionConcurrency is denied",
			[]string{"L3"}},
		"alarms": {func(a *account) { a.cloudwatch.deny("DescribeAlarms") }, "cloudwatch:DescribeAlarms is denied", []string{"A1"}},
		"age": {
			all(letters(1, day), func(a *account) { a.cloudwatch.deny("GetMetricData") }), "cloudwatch:GetMetricData is denied", []string{"Q4"},
		},
		"no age yet": {all(letters(1, day), func(a *account) { clear(a.ages) }),
			"CloudWatch has no ApproximateAgeOfOldestMessage of orders-dlq", []string{"Q4"}},
		"an age that is none": {letters(1, -day), "CloudWatch has no ApproximateAgeOfOldestMessage of orders-dlq", []string{"Q4"}},
		"no clients but SQS": {func(a *account) { a.clients = Clients{SQS: a.clients.SQS} }, "no client", []string{"Q6", "Q7", "L1", "L2",
			"L3", "L4", "L5", "L6", "A1"}},
		"no clients": {func(a *account) { a.clients = Clients{} }, "no client", everything},
		"an encrypted filter": {mapped(func(m *mappingConfiguration) { m.KMSKeyArn = aws.String("k") }),
			"filter criteria of mapping " + uuid + " are encrypted", []string{"L4"}},
		"no timeout":    {func(a *account) { a.functions["billing"].Timeout = nil }, "billing has the timeout 0 s", []string{"Q7"}},
		"no visibility": {lie("orders", "VisibilityTimeout", "soon"), `VisibilityTimeout of orders is "soon", not a number`, []string{"Q7", "Q9"}},
		"no retention":  {lie("orders", "MessageRetentionPeriod", ""), "MessageRetentionPeriod of orders is", []string{"Q4", "Q5", "Q9"}},
		"no count": {lie("orders-dlq", "ApproximateNumberOfMessages", "-1"), "ApproximateNumberOfMessages of orders-dlq is",
			[]string{"Q4"}},
		"endless mappings": {endlessMappings, "lambda:ListEventSourceMappings: more than 50 pages", []string{"Q6", "Q7", "L1", "L2", "L3",
			"L4", "L5", "L6"}},
		"endless alarms": {endlessAlarms, "cloudwatch:DescribeAlarms: more than 50 pages", []string{"A1"}},
		"no function any more": {func(a *account) { clear(a.functions) },
			"lambda:GetFunctionConfiguration: ResourceNotFoundException: Function not found", []string{"Q7", "L5", "L6"}},
	} {
		run(t, name, func(a *account) {
			test.prepare(a)
			found := a.examine(queueSideChecks()...)
			for _, id := range slices.Sorted(maps.Keys(found)) {
				f := found[id]
				switch skipped := slices.Contains(test.skipped, id); {
				case skipped && (f.Verdict != Unknown || !strings.Contains(f.Text, test.text) || f.Fix != ""):
					a.Errorf("got %s, want unknown with %q", f, test.text)
				case !skipped && f.Verdict != OK:
					a.Errorf("beside it: %s", f)
				}
			}
			for _, id := range test.skipped {
				if _, there := found[id]; !there {
					a.Errorf("nothing of %s", id)
				}
			}
		})
	}
}

func endlessMappings(a *account) {
	answer(a.lambda, func(*lambda.ListEventSourceMappingsInput) (*lambda.ListEventSourceMappingsOutput, error) {
		return &lambda.ListEventSourceMappingsOutput{EventSourceMappings: []mappingConfiguration{}, NextMarker: aws.String("more")}, nil
	})
}

func endlessAlarms(a *account) {
	answer(a.cloudwatch, func(*cloudwatch.DescribeAlarmsInput) (*cloudwatch.DescribeAlarmsOutput, error) {
		return &cloudwatch.DescribeAlarmsOutput{NextToken: aws.String("more")}, nil
	})
}

// What was seen of a check is said though the rest was denied, and what was not seen too.
func TestSeenInPart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id      string
		verdict Verdict
		text    string
		spoil   func(*account)
	}{
		"the wrong kind, by its name": {
			"Q3", Fail, "a FIFO one", all(lie("orders", "RedrivePolicy", `{"deadLetterTargetArn":"`+dlqARN+`.fifo","maxReceiveCount":5}`), denyDLQ),
		},
		"short retention, and no age": {
			"Q4", Warn, "keeps messages for 13d", all(with("orders-dlq", "MessageRetentionPeriod", "1123200"), letters(1, day),
				func(a *account) { a.cloudwatch.deny("GetMetricData") }),
		},
		"a chain, and no mappings": {
			"Q6", Fail, "has its own redrive policy",
			all(with("orders-dlq", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("orders")+`","maxReceiveCount":3}`),
				func(a *account) { a.lambda.deny("ListEventSourceMappings") }),
		},
		"six times the function, and no window": {
			"Q7", Warn, "less than 6 x the 30s", all(with("orders", "VisibilityTimeout", "170"),
				func(a *account) { a.lambda.deny("ListEventSourceMappings") }),
		},
		"no limit, and what is reserved": {
			"L3", Warn, "no MaximumConcurrency", all(mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil }),
				func(a *account) { a.lambda.deny("GetFunctionConcurrency") }),
		},
	} {
		run(t, name, func(a *account) {
			test.spoil(a)
			f := a.examine(queueSideChecks()...)[test.id]
			wantMissed := test.id != "Q3" // where the names say enough
			if f.Verdict != test.verdict || !strings.Contains(f.Text, test.text) || strings.Contains(f.Text,
				"; not all was seen: ") != wantMissed || f.Fix == "" {
				a.Errorf("got %s, fix %q", f, f.Fix)
			}
		})
	}
}

// Deployments that look odd and are in order.
func TestInOrder(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*account){
		"a worker":                    func(a *account) { a.deployment.Function = "" },
		"a worker, and nothing known": func(a *account) { a.deployment.Function, a.deployment.LongestHandler = "", 0 },
		"all or nothing": all(mapped(func(m *mappingConfiguration) { m.FunctionResponseTypes = nil }),
			func(a *account) { a.deployment.AllOrNothing = true }),
		"an alias":                      mapped(func(m *mappingConfiguration) { m.FunctionArn = aws.String(functionARN("billing") + ":live") }),
		"a function's ARN":              func(a *account) { a.deployment.Function = functionARN("billing") },
		"a partial ARN":                 func(a *account) { a.deployment.Function = "000000000000:function:billing" },
		"an alias, by its ARN":          all(mapped(func(m *mappingConfiguration) { m.FunctionArn = aws.String(functionARN("billing") + ":live") }), func(a *account) { a.deployment.Function = functionARN("billing") + ":live" }),
		"a second mapping, disabled":    secondMapping,
		"the limit is what is reserved": concurrency(10, 10),
		"no result yet":                 lastly("No records processed"),
		"no result":                     mapped(func(m *mappingConfiguration) { m.LastProcessingResult = nil }),
		"an empty filter": mapped(func(m *mappingConfiguration) {
			m.FilterCriteria, m.KMSKeyArn = &lambdatypes.FilterCriteria{}, aws.String("k")
		}),
		"a mapping of the DLQ that rests": func(a *account) {
			a.mappings = append(a.mappings, &mappingConfiguration{State: aws.String("Disabled"), EventSourceArn: aws.String(dlqARN)})
		},
		"two days left":             letters(1, 8*day-2*time.Minute),
		"a composite alarm":         all(silence("age"), composite(`ALARM("x") OR ALARM( "age" )`, true)),
		"a composite alarm of ARNs": all(silence("age"), composite(`ALARM("arn:aws:cloudwatch:us-east-1:000000000000:alarm:age")`, true)),
		"an alarm on the DLQ's age": all(without("dead letters"), ageAlarm("orders-dlq")),
		"an alarm on visible and age": func(a *account) {
			*a.metric["dead letters"].Metrics[2].MetricStat.Metric.MetricName = "ApproximateAgeOfOldestMessage"
		},
		"no allow policy":                allows(""),
		"allows all":                     allows(`{"redrivePermission":"allowAll"}`),
		"maxReceiveCount as a string":    with("orders", "RedrivePolicy", `{"deadLetterTargetArn":"`+dlqARN+`","maxReceiveCount":"5"}`),
		"a handler as long as it can be": longest(179 * 5e9),
	} {
		run(t, name, func(a *account) {
			prepare(a)
			for _, f := range a.examine(queueSideChecks()...) {
				if f.Verdict != OK {
					a.Errorf("%s", f)
				}
			}
		})
	}
}

func secondMapping(a *account) {
	second := *a.mappings[0]
	second.UUID, second.State, second.FunctionArn = aws.String("u2"), aws.String("Disabled"), aws.String(functionARN("billing")+":old")
	a.mappings = []*mappingConfiguration{&second, a.mappings[0]}
}

// A service that answers with nothing where something must be makes no check panic, and none that needs it ok.
func TestEmptyAnswers(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	alter(a.lambda, func(out *lambda.GetFunctionConfigurationOutput) { *out = lambda.GetFunctionConfigurationOutput{} })
	alter(a.lambda, func(out *lambda.ListEventSourceMappingsOutput) {
		out.EventSourceMappings = []mappingConfiguration{{FunctionArn: aws.String(functionARN("billing")),
			FilterCriteria: &lambdatypes.FilterCriteria{}, ScalingConfig: &lambdatypes.ScalingConfig{}}}
	})
	alter(a.cloudwatch, func(out *cloudwatch.DescribeAlarmsOutput) {
		out.MetricAlarms = []cwtypes.MetricAlarm{{}, {Metrics: []cwtypes.MetricDataQuery{{}, {MetricStat: &cwtypes.MetricStat{}}}}}
		out.CompositeAlarms = []cwtypes.CompositeAlarm{{}}
	})
	alter(a.cloudwatch, func(out *cloudwatch.GetMetricDataOutput) {
		for i := range out.MetricDataResults {
			out.MetricDataResults[i].Values = nil
		}
	})
	alter(a.sqs, func(out *sqs.ListMessageMoveTasksOutput) { out.Results = append(out.Results, out.Results...) })
	letters(1, day)(a)
	want := map[string]Verdict{"Q4": Unknown, "Q6": Fail, "Q7": Unknown, "L1": Fail, "L2": Fail, "L3": Warn, "A1": Warn}
	for id, f := range a.examine(queueSideChecks()...) {
		if f.Verdict != want[id] && (f.Verdict != OK || want[id] != "") || strings.Contains(f.Text, "panicked") {
			t.Errorf("%s, want %q", f, want[id])
		}
	}
	alter(a.sqs, func(out *sqs.GetQueueAttributesOutput) { out.Attributes = nil })
	for id, f := range a.examine(queueSideChecks()...) {
		if f.Verdict != Unknown && (id != "Q1" || f.Verdict != Fail) || strings.Contains(f.Text, "panicked") {
			t.Errorf("no attributes: %s", f)
		}
	}
}

// With credentials of another account SQS says that a queue is missing where it may not be seen, and CloudWatch has metrics and alarms of
// other queues with the same names.
func TestAnotherAccount(t *testing.T) {
	t.Parallel()
	for _, account := range []string{"000000000000", "999999999999", ""} {
		for _, missing := range []bool{false, true} {
			a := healthy(t, "orders")
			answer(a.sts, func(*sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
				return &sts.GetCallerIdentityOutput{Account: &account, Arn: aws.String(callerARN)}, nil
			})
			letters(1, 13*day)(a) // too old
			if missing {
				a.sqs.refuse("GetQueueAttributes", func(in any) error {
					if strings.HasSuffix(*in.(*sqs.GetQueueAttributesInput).QueueUrl, "-dlq") {
						return &sqstypes.QueueDoesNotExist{}
					}
					return nil
				})
			}
			found := a.examine(queueSideChecks()...)
			want := map[string]Verdict{"Q3": OK, "Q4": Warn, "A1": OK}
			if missing {
				want["Q3"], want["Q4"] = Fail, Unknown
			}
			if account == "999999999999" {
				want = map[string]Verdict{"Q3": OK, "Q4": Unknown, "A1": Unknown}
				if missing {
					want["Q3"] = Unknown
				}
			}
			for id, verdict := range want {
				f := found[id]
				if f.Verdict != verdict || verdict == Unknown && (f.Fix != "" || !missing && !strings.Contains(f.Text, "of account 000000000000 cannot be seen")) {
					t.Errorf("credentials of %q, missing %t: %s, want %s", account, missing, f, verdict)
				}
			}
		}
	}
}

// The checks read, and ask for each thing once.
func TestCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := healthy(t, "orders")
		letters(1, day)(a)
		for _, f := range []*fake{a.sqs, a.dynamodb, a.lambda, a.iam, a.cloudwatch, a.sts} {
			f.calls = nil
		}
		a.examine(slices.Concat(queueSideChecks(), tableChecks(), permissionChecks())...)
		for f, want := range map[*fake]map[string]int{
			a.sqs:        {"GetQueueAttributes": 2, "ListMessageMoveTasks": 1},
			a.lambda:     {"ListEventSourceMappings": 2, "GetFunctionConfiguration": 1, "GetFunctionConcurrency": 1},
			a.cloudwatch: {"GetMetricData": 1, "DescribeAlarms": 1},
			a.sts:        {"GetCallerIdentity": 1},
			a.iam:        {"SimulatePrincipalPolicy": 9},
			a.dynamodb:   {"DescribeTable": 1, "DescribeTimeToLive": 1, "DescribeContinuousBackups": 1},
		} {
			got := map[string]int{}
			for _, c := range f.calls {
				got[c]++
			}
			if !maps.Equal(got, want) {
				t.Errorf("calls %v, want %v", got, want)
			}
		}
	})
}
