package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

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
		if invokes(aws.ToString(m.FunctionArn), e.Function) && (found == nil || aws.ToString(m.State) == "Enabled") {
			found = &all[i]
		}
	}
	return found, nil
}

// mostPages bounds lists: what answers with a next page for ever is not followed.
const mostPages = 50

// mappingsOf returns the mappings that read from a queue, of whatever function: a list by the function's name leaves out those of its
// aliases.
func (e *examination) mappingsOf(ctx context.Context, queueARN string) ([]mappingConfiguration, error) {
	if e.Lambda == nil {
		return nil, errNoClient
	}
	var all []mappingConfiguration
	in := &lambda.ListEventSourceMappingsInput{EventSourceArn: &queueARN, MaxItems: aws.Int32(100)}
	for range mostPages {
		out, err := e.Lambda.ListEventSourceMappings(ctx, in)
		if err == nil && out.EventSourceMappings == nil { // Lambda's has an empty list
			err = errors.New("lambda:ListEventSourceMappings: the answer has no list")
		}
		if err != nil {
			return nil, err
		}
		all = append(all, out.EventSourceMappings...)
		if in.Marker = out.NextMarker; aws.ToString(in.Marker) == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("lambda:ListEventSourceMappings: more than %d pages", mostPages)
}

// invokes reports whether a mapping's function is the one that a name, a partial or a whole ARN means. Without a version or alias it
// means all of them.
func invokes(arn, function string) bool {
	name, qualifier := functionName(function)
	invoked, of := functionName(arn)
	return name == invoked && (qualifier == "" || qualifier == of)
}

func functionName(s string) (name, qualifier string) {
	if _, after, ok := strings.Cut(s, ":function:"); ok {
		s = after
	}
	name, qualifier, _ = strings.Cut(s, ":")
	return name, qualifier
}

// unqualified is a function's name or ARN without version or alias.
func unqualified(function string) string {
	if _, qualifier := functionName(function); qualifier != "" {
		return strings.TrimSuffix(function, ":"+qualifier)
	}
	return function
}
