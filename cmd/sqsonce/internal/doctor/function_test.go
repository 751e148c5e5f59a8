package doctor

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

func mapped(change func(*mappingConfiguration)) func(*account) {
	return func(a *account) { change(a.mappings[0]) }
}

func in(state string) func(*account) {
	return mapped(func(m *mappingConfiguration) { m.State = &state })
}

func lastly(result string) func(*account) {
	return mapped(func(m *mappingConfiguration) { m.LastProcessingResult = &result })
}

func concurrency(most, reserved int32) func(*account) {
	return func(a *account) {
		a.mappings[0].ScalingConfig.MaximumConcurrency = &most
		a.reserved["billing"] = reserved
	}
}

var functionDefects = []defect{
	{
		name: "none", id: "L1", verdict: Fail, text: "no event source mapping hands messages of orders to billing",
		spoil: func(a *account) { a.mappings = nil },
	},
	{
		name: "of another function", id: "L1", verdict: Fail, text: "no event source mapping hands messages of orders to billing",
		spoil: mapped(func(m *mappingConfiguration) { m.FunctionArn = aws.String(functionARN("billing-test")) }),
	},
	{
		name: "of another alias", id: "L1", verdict: Fail, text: "no event source mapping hands messages of orders to billing:live",
		words: "--function-name billing:live",
		spoil: func(a *account) {
			a.deployment.Function = "billing:live"
			a.mappings[0].FunctionArn = aws.String(functionARN("billing") + ":test")
		},
	},
	{name: "disabled", id: "L1", verdict: Fail, text: "is Disabled: nothing receives for billing", spoil: in("Disabled")},
	{name: "on its way", id: "L1", verdict: Warn, text: "is Updating", words: "look again", spoil: in("Updating")},
	{name: "going", id: "L1", verdict: Fail, text: `in the state "Deleting"`, words: "create a mapping", spoil: in("Deleting")},
	{name: "failing", id: "L1", verdict: Fail, text: `the last result is "PROBLEM: Function call failed"`,
		words: "aws logs tail /aws/lambda/billing", spoil: lastly("PROBLEM: Function call failed")},
	{name: "a result of which nothing is known", id: "L1", verdict: Warn, text: `the last result is "Paused"`, words: "aws logs tail",
		spoil: lastly("Paused")},

	{
		name: "none", id: "L2", verdict: Fail, text: "has no ReportBatchItemFailures: one failed message fails its whole batch",
		spoil: mapped(func(m *mappingConfiguration) { m.FunctionResponseTypes = nil }),
	},

	{
		name: "no limit", id: "L3", verdict: Warn, text: "has no MaximumConcurrency",
		spoil: mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil }),
	},
	{
		name: "no limit, and five reserved", id: "L3", verdict: Warn, text: "has no MaximumConcurrency",
		spoil: all(concurrency(10, 5), mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil })),
	},
	{
		name: "no limit, and one reserved", id: "L3", verdict: Warn, text: "above the reserved concurrency 1",
		spoil: all(concurrency(10, 1), mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil })),
	},
	{name: "above what is reserved", id: "L3", verdict: Warn,
		text: "invokes up to 10 at a time, above the reserved concurrency 9 of billing", spoil: concurrency(10, 9)},
	{name: "less reserved than can be the limit", id: "L3", verdict: Warn, text: "above the reserved concurrency 1 of billing",
		spoil: concurrency(10, 1)},
	{name: "nothing runs", id: "L3", verdict: Warn, text: "above the reserved concurrency 0 of billing", spoil: concurrency(10, 0)},
	{
		name: "provisioned pollers", id: "L3", verdict: Warn, text: "invokes up to 50 at a time, above the reserved concurrency 49",
		spoil: all(concurrency(10, 49), mapped(func(m *mappingConfiguration) {
			m.ScalingConfig, m.ProvisionedPollerConfig = nil, &lambdatypes.ProvisionedPollerConfig{MinimumPollers: aws.Int32(2),
				MaximumPollers: aws.Int32(5)}
		})),
	},

	{
		name: "a filter", id: "L4", verdict: Warn, text: "has 1 filter patterns",
		spoil: mapped(func(m *mappingConfiguration) {
			m.FilterCriteria = &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: aws.String(`{"body":{"kind":["order"]}}`)}}}
		}),
	},
	{
		name: "a filter that nobody can read", id: "L4", verdict: Warn, text: "cannot read (KMS.DisabledException)", words: "--filter-criteria",
		spoil: mapped(func(m *mappingConfiguration) {
			m.FilterCriteriaError = &lambdatypes.FilterCriteriaError{ErrorCode: aws.String("KMS.DisabledException")}
		}),
	},
}

// A new limit is within what is reserved, in one command.
func TestNewLimit(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	all(concurrency(10, 5), mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil }))(a)
	f := a.examine(queueSideChecks()...)["L3"]
	if !strings.HasSuffix(f.Fix, " --scaling-config MaximumConcurrency=5") || strings.Contains(f.Fix, "&&") || strings.Contains(f.Text,
		"reserved") {
		t.Errorf("%s, fix %q", f, f.Fix)
	}
}
