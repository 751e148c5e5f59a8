package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// resource is a stack, table or queue of a run.
type resource struct {
	kind, name string
	delete     func(context.Context) error // nil: it is being deleted
}

func (r resource) String() string { return r.kind + " " + r.name }

// clean deletes everything with the prefix, stacks first, until nothing is listed. It goes on after an error: a table that is
// being created can be deleted later. SQS lists a deleted queue for a minute.
func clean(ctx context.Context, cfg aws.Config, prefix string, out io.Writer) error {
	var failed error // of the last round
	for {
		left, err := find(ctx, cfg, prefix)
		if err == nil && len(left) == 0 {
			fmt.Fprintln(out, "everything with the prefix is deleted")
			return nil
		}
		if len(left) > 0 && left[0].kind == "stack" { // its resources are the stack's to delete
			left = slices.DeleteFunc(left, func(r resource) bool { return r.kind != "stack" })
		}
		failed = err
		for _, r := range left {
			if r.delete == nil {
				continue
			}
			fmt.Fprintln(out, "deleting", r)
			if err := r.delete(ctx); err != nil {
				fmt.Fprintln(out, err)
				failed = errors.Join(failed, err)
			}
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("still there: %v: run make aws-clean: %w", left, context.Cause(ctx)), failed)
		}
	}
}

// find returns everything with the prefix, stacks first. One kind that cannot be listed does not keep the others from the result.
func find(ctx context.Context, cfg aws.Config, prefix string) (all []resource, err error) {
	for _, list := range []func(context.Context, aws.Config) ([]resource, error){stacks, tables, queues} {
		some, listErr := list(ctx, cfg)
		all, err = append(all, some...), errors.Join(err, listErr)
	}
	return slices.DeleteFunc(all, func(r resource) bool { return !strings.HasPrefix(r.name, prefix) }), err
}

func stacks(ctx context.Context, cfg aws.Config) (found []resource, err error) {
	client := cloudformation.NewFromConfig(cfg)
	for pages := cloudformation.NewListStacksPaginator(client, &cloudformation.ListStacksInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		for _, s := range page.StackSummaries {
			r := resource{kind: "stack", name: *s.StackName}
			switch s.StackStatus {
			case cfntypes.StackStatusDeleteComplete:
				continue
			case cfntypes.StackStatusDeleteInProgress:
			default:
				r.delete = func(ctx context.Context) error {
					_, err := client.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: s.StackName})
					return err
				}
			}
			found = append(found, r)
		}
	}
	return found, nil
}

func tables(ctx context.Context, cfg aws.Config) (found []resource, err error) {
	client := dynamodb.NewFromConfig(cfg)
	for pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		for _, name := range page.TableNames {
			found = append(found, resource{"table", name, func(ctx context.Context) error { return deleteTable(ctx, client, &name) }})
		}
	}
	return found, nil
}

// deleteTable takes several calls: a table that is being created, changed or deleted is left to the next one.
func deleteTable(ctx context.Context, client *dynamodb.Client, name *string) error {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: name})
	if err != nil || out.Table.TableStatus != ddbtypes.TableStatusActive {
		return err
	}
	if aws.ToBool(out.Table.DeletionProtectionEnabled) {
		_, err = client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: name, DeletionProtectionEnabled: aws.Bool(false)})
		return err
	}
	_, err = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: name})
	return err
}

func queues(ctx context.Context, cfg aws.Config) (found []resource, err error) {
	client := sqs.NewFromConfig(cfg)
	for pages := sqs.NewListQueuesPaginator(client, &sqs.ListQueuesInput{MaxResults: aws.Int32(1000)}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		for _, url := range page.QueueUrls {
			found = append(found, resource{"queue", path.Base(url), func(ctx context.Context) error {
				_, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
				return err
			}})
		}
	}
	return found, nil
}
