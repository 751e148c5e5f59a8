package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// The longest invocations by a mapping of SQS.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
const (
	longestInvocation = 15 * time.Minute
	longestManaged    = 90 * time.Minute // on Managed Instances
)

// checkDurable is L5. It does not apply to a function that is not durable. A mapping gives its executions no name, so
// that Lambda does not know that two deliveries are one event, and it waits for the whole execution.
// https://docs.aws.amazon.com/lambda/latest/dg/durable-invoking-esm.html
func checkDurable(ctx context.Context, e *examination) []Finding {
	m, c, missed := e.mapped(ctx, "L5")
	if m == nil || c == nil || c.DurableConfig == nil {
		return missed
	}
	r := report{id: "L5"}
	const fix = "let the mapping invoke a function that starts the execution by a name made of the event's key: docs/lambda.md, Durable functions"
	r.warn(fix, "%s is durable: each delivery by mapping %s, also of the same message, starts an execution", e.Function, aws.ToString(m.UUID))
	longest := longestInvocation
	if c.CapacityProviderConfig != nil {
		longest = longestManaged
	}
	switch d := time.Duration(aws.ToInt32(c.DurableConfig.ExecutionTimeout)) * time.Second; {
	case d <= 0:
		r.miss(fmt.Errorf("lambda does not say how long an execution of %s may last", e.Function))
	case d > longest:
		r.fail(fix, "its executions may last %s, and one that a mapping has started fails after %s", span(d), span(longest))
	}
	return []Finding{r.finding("")}
}

// checkManaged is L6. It does not apply to a function that is not on Managed Instances, and finds nothing wrong: it
// says what a pool needs.
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-scaling.html
func checkManaged(ctx context.Context, e *examination) []Finding {
	_, c, missed := e.mapped(ctx, "L6")
	if c == nil || c.CapacityProviderConfig == nil {
		return missed
	}
	r := report{id: "L6"}
	var n int32
	if p := c.CapacityProviderConfig.LambdaManagedInstancesCapacityProviderConfig; p != nil {
		n = aws.ToInt32(p.PerExecutionEnvironmentMaxConcurrency)
	}
	if n <= 0 {
		r.miss(fmt.Errorf("%s is on Managed Instances, and lambda does not say how many invocations a process has at once: a pool needs Concurrency times as many connections", e.Function))
	}
	return []Finding{r.finding("%s is on Managed Instances: a process has up to %d invocations at once, so that a pool needs Concurrency x %d connections", e.Function, n, n)}
}

// mapped is the mapping, and the configuration of the function that it invokes. Both are nil where there is no mapping,
// or where one of them could not be seen: then missed is the check's finding.
func (e *examination) mapped(ctx context.Context, id string) (m *mappingConfiguration, c *lambda.GetFunctionConfigurationOutput, missed []Finding) {
	m, err := e.mapping(ctx)
	if err == nil && m != nil {
		c, err = e.configuration(ctx)
	}
	if err != nil {
		return nil, nil, []Finding{unseen(id, err)}
	}
	return m, c, nil
}
