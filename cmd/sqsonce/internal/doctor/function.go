package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/mappings"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shell"
)

// functionChecks apply where a function is named. All but L1 need its mapping.
func functionChecks() []check {
	return []check{
		{[]string{"L1"}, checkMapping},
		{[]string{"L2"}, ofMapping("L2", checkItemFailures)},
		{[]string{"L3"}, ofMapping("L3", checkConcurrency)},
		{[]string{"L4"}, ofMapping("L4", checkFilter)},
		{[]string{"L5"}, checkDurable},
		{[]string{"L6"}, checkManaged},
		{[]string{"L7"}, checkLimits},
	}
}

type lookAtMapping func(context.Context, *examination, *mappingConfiguration) Finding

// ofMapping is a check that applies where there is a mapping.
func ofMapping(id string, look lookAtMapping) func(context.Context, *examination) []Finding {
	return func(ctx context.Context, e *examination) []Finding {
		if e.Function == "" {
			return nil
		}
		m, err := e.mapping(ctx)
		if err != nil {
			return []Finding{unseen(id, err)}
		}
		if m == nil {
			return nil
		}
		return []Finding{look(ctx, e, m)}
	}
}

// checkLimits is L7, where it applies.
func checkLimits(ctx context.Context, e *examination) []Finding {
	if e.Limits == "" {
		return nil
	}
	return ofMapping("L7", checkFunctionLimits)(ctx, e)
}

// checkMapping is L1.
// https://docs.aws.amazon.com/lambda/latest/api/API_EventSourceMappingConfiguration.html
func checkMapping(ctx context.Context, e *examination) []Finding {
	if e.Function == "" {
		return nil
	}
	r := report{id: "L1"}
	m, err := e.mapping(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	q, err := e.queue(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	if m == nil {
		create := awsCommand("lambda", "create-event-source-mapping", "--function-name", e.Function, "--event-source-arn", q.arn,
			"--batch-size", "10",
			"--function-response-types", reportItems, "--scaling-config", fmt.Sprintf("MaximumConcurrency=%d", someConcurrency))
		r.fail(create, "no event source mapping sends messages of %s to %s", q.name, e.Function)
		return []Finding{r.finding("")}
	}
	state := aws.ToString(m.State)
	switch state {
	case "Enabled":
	case "Creating", "Enabling", "Updating":
		r.warn("look again in a minute", "mapping %s is %s", aws.ToString(m.UUID), state)
	case "Disabled", "Disabling":
		e.checkOff(ctx, &r, m)
	default:
		r.fail("wait until it is deleted, then create a mapping", "mapping %s is in the state %.40q", aws.ToString(m.UUID), state)
	}
	// Mappings of queues often have no result. AWS documents no list of values; what is no error is "OK" or "No records processed".
	name, _ := mappings.FunctionName(e.Function)
	logs := "read the function's log: " + awsCommand("logs", "tail", "/aws/lambda/"+name, "--since", "1h")
	switch result := aws.ToString(m.LastProcessingResult); {
	case result == "", result == "OK", result == "No records processed":
	case strings.HasPrefix(strings.ToUpper(result), "PROBLEM"):
		r.fail(logs, "mapping %s: the last result is %.200q", aws.ToString(m.UUID), result)
	default:
		r.warn(logs, "mapping %s: the last result is %.200q", aws.ToString(m.UUID), result)
	}
	return []Finding{r.finding("mapping %s from %s to %s is enabled", aws.ToString(m.UUID), q.name, e.Function)}
}

// checkOff says of a mapping that is off who has switched it off, and until when, if that was sqsonce.
func (e *examination) checkOff(ctx context.Context, r *report, m *mappingConfiguration) {
	var paused mappings.Mapping
	if e.Scheduler != nil {
		var err error
		paused, err = (&mappings.Switch{Scheduler: e.Scheduler}).Of(ctx, *m)
		r.miss(err)
	}
	resume := shell.Command("sqsonce", "resume", "--function", e.Function, "--reason", "REASON")
	switch is, _ := paused.Is(); {
	case paused.Paused():
		r.warn(resume, "mapping %s is %s", paused.UUID, is)
	case paused.Off() && paused.Ours(), paused.Resumes():
		r.fail(resume, "mapping %s is %s: nothing receives for %s", paused.UUID, is, e.Function)
	default:
		r.fail(updateMapping(m, "--enabled"), "mapping %s is %s: nothing receives for %s", aws.ToString(m.UUID), aws.ToString(m.State), e.Function)
	}
}

const (
	reportItems     = string(lambdatypes.FunctionResponseTypeReportBatchItemFailures)
	someConcurrency = 10  // as template.yaml has
	leastLimit      = 2   // the least MaximumConcurrency
	pollerInvokes   = 10  // invocations of one provisioned poller at a time
	mostPollers     = 200 // provisioned pollers where MaximumPollers is not set
)

// updateMapping is the command that changes a mapping.
func updateMapping(m *mappingConfiguration, args ...string) string {
	return awsCommand(append([]string{"lambda", "update-event-source-mapping", "--uuid", aws.ToString(m.UUID)}, args...)...)
}

// checkItemFailures is L2.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
func checkItemFailures(_ context.Context, e *examination, m *mappingConfiguration) Finding {
	r := report{id: "L2"}
	has := slices.Contains(m.FunctionResponseTypes, lambdatypes.FunctionResponseTypeReportBatchItemFailures)
	if !has && !e.AllOrNothing {
		r.fail(updateMapping(m, "--function-response-types", reportItems), "mapping %s has no %s: Lambda deletes the messages that the function reports as failed",
			aws.ToString(m.UUID), reportItems)
	}
	if !has {
		return r.finding("one failed message fails its whole batch, which is meant")
	}
	return r.finding("mapping %s has %s", aws.ToString(m.UUID), reportItems)
}

// checkConcurrency is L3. Without a limit the mapping goes on receiving while the function is throttled: each throttle is a receive of
// messages that no handler sees.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
func checkConcurrency(ctx context.Context, e *examination, m *mappingConfiguration) Finding {
	r := report{id: "L3"}
	reserved, has, err := e.reserved(ctx)
	r.miss(err)
	function := unqualified(e.Function)
	reserve := func(n int32) string {
		return awsCommand("lambda", "put-function-concurrency", "--function-name", function, "--reserved-concurrent-executions", fmt.Sprint(n))
	}
	limitTo := func(n int32) string {
		return updateMapping(m, "--scaling-config", fmt.Sprintf("MaximumConcurrency=%d", n))
	}

	limit, provisioned := int32(0), false
	if s := m.ScalingConfig; s != nil {
		limit = aws.ToInt32(s.MaximumConcurrency)
	}
	if p := m.ProvisionedPollerConfig; limit == 0 && p != nil {
		limit, provisioned = pollerInvokes*cmp.Or(aws.ToInt32(p.MaximumPollers), mostPollers), true
	}
	if limit <= 0 {
		limit = someConcurrency
		if has {
			limit = min(max(reserved, leastLimit), someConcurrency)
		}
		r.warn(limitTo(limit), "mapping %s has no MaximumConcurrency, and no --provisioned-poller-config in its place: if %s is throttled, each throttle costs messages a receive",
			aws.ToString(m.UUID), function)
	}
	switch {
	case !has || limit <= reserved:
	case reserved < leastLimit || provisioned:
		r.warn(reserve(limit), "mapping %s invokes up to %d at a time, above the reserved concurrency %d of %s: throttles cost receives",
			aws.ToString(m.UUID), limit, reserved, function)
	default:
		r.warn(limitTo(reserved), "mapping %s invokes up to %d at a time, above the reserved concurrency %d of %s: throttles cost receives",
			aws.ToString(m.UUID), limit, reserved, function)
	}
	if !has {
		return r.finding("mapping %s invokes up to %d at a time; %s has no reserved concurrency", aws.ToString(m.UUID), limit, function)
	}
	return r.finding("mapping %s invokes up to %d at a time, within the reserved concurrency %d of %s", aws.ToString(m.UUID), limit,
		reserved, function)
}

// reserved is the function's reserved concurrency, if it has one.
func (e *examination) reserved(ctx context.Context) (n int32, has bool, err error) {
	function := unqualified(e.Function) // versions and aliases have none
	out, err := e.Lambda.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &function})
	if err != nil || out.ReservedConcurrentExecutions == nil {
		return 0, false, err
	}
	return *out.ReservedConcurrentExecutions, true, nil
}

// checkFilter is L4.
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html
func checkFilter(_ context.Context, e *examination, m *mappingConfiguration) Finding {
	r := report{id: "L4"}
	remove := updateMapping(m, "--filter-criteria", "{}")
	switch {
	case m.FilterCriteriaError != nil:
		r.warn(remove, "mapping %s has filter criteria that Lambda cannot read (%s): Lambda deletes messages that they filter out, and no handler sees them",
			aws.ToString(m.UUID), aws.ToString(m.FilterCriteriaError.ErrorCode))
	case m.FilterCriteria != nil && len(m.FilterCriteria.Filters) > 0:
		r.warn(remove, "mapping %s has %d filter patterns: Lambda deletes a message that none of them matches, and no handler sees it",
			aws.ToString(m.UUID), len(m.FilterCriteria.Filters))
	case m.KMSKeyArn != nil && m.FilterCriteria == nil:
		r.miss(fmt.Errorf("the filter criteria of mapping %s are encrypted", aws.ToString(m.UUID)))
	}
	return r.finding("mapping %s has no filter", aws.ToString(m.UUID))
}

type mappingConfiguration = lambdatypes.EventSourceMappingConfiguration

// mapping is the event source mapping from the source queue to the function, or nil where there is none. Of several, to aliases of the
// function, it is one that is enabled.
func (e *examination) mapping(ctx context.Context) (*mappingConfiguration, error) {
	all, err := e.mappings.get(ctx, func(ctx context.Context) ([]mappingConfiguration, error) {
		q, err := e.queue(ctx)
		if err != nil {
			return nil, err
		}
		return e.mappingsOf(ctx, q.arn)
	})
	if err != nil {
		return nil, err
	}
	var found *mappingConfiguration
	for i, m := range all {
		if mappings.Invokes(aws.ToString(m.FunctionArn), e.Function) && (found == nil || aws.ToString(m.State) == "Enabled") {
			found = &all[i]
		}
	}
	return found, nil
}

// mostPages bounds lists: what answers with a next page for ever is not followed.
const mostPages = 50

// mappingsOf returns the mappings that read from a queue, of whatever function.
func (e *examination) mappingsOf(ctx context.Context, queueARN string) ([]mappingConfiguration, error) {
	if e.Lambda == nil {
		return nil, errNoClient
	}
	all, _, err := mappings.List(ctx, e.Lambda, queueARN)
	return all, err
}

// unqualified is a function's name or ARN without version or alias.
func unqualified(function string) string {
	if _, qualifier := mappings.FunctionName(function); qualifier != "" {
		return strings.TrimSuffix(function, ":"+qualifier)
	}
	return function
}
