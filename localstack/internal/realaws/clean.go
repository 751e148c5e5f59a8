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
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/localstack/internal/realaws/account"
)

// cleanTimeout is for the deletion of a stack with functions, and for SQS, which lists a deleted queue for a minute.
const cleanTimeout = 15 * time.Minute

// listTimeout is for the list of one kind.
const listTimeout = time.Minute

// resource is something that a run has created. What a stack has created is the stack's, but for what outlives it.
type resource struct {
	kind, name string
	ends       bool // is being deleted already
	delete     func(context.Context) error
}

func (r resource) String() string { return r.kind + " " + r.name }

// clean deletes what the guard's runs have, stacks first, until nothing is listed any more, so many times in a row: what was
// being created when a run was cut may appear late. It goes on after an error: the same deletion may succeed later, and others now.
func clean(ctx context.Context, a *account.Account, out io.Writer, times int) error {
	empty := 0
	for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
		left, failed := find(ctx, a)
		if len(left) == 0 {
			if empty++; empty == times {
				return failed
			}
			pause = 10 * time.Second
		} else {
			empty = 0
		}
		if len(left) > 0 && left[0].kind == "stack" { // whose resources are the stack's to delete
			left = slices.DeleteFunc(left, func(r resource) bool { return r.kind != "stack" })
		}
		protected := false // which no further attempt changes
		for _, r := range left {
			if r.ends {
				continue
			}
			fmt.Fprintln(out, "deleting", r)
			if err := r.delete(ctx); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", r, err))
				protected = protected || strings.Contains(err.Error(), "TerminationProtection")
			}
		}
		if protected {
			return failed
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(failed, fmt.Errorf("still listed: %v: %w", left, context.Cause(ctx)))
		}
	}
}

// find returns what the guard's runs have, stacks first. A kind that cannot be listed is in the error, and the others are in
// the result.
func find(ctx context.Context, a *account.Account) (all []resource, err error) {
	for _, f := range []func(context.Context, *account.Account) ([]resource, error){findStacks, findBuckets, findTables, findQueues} {
		listCtx, cancel := context.WithTimeout(ctx, listTimeout)
		some, findErr := f(listCtx, a)
		cancel()
		if findErr != nil {
			err = errors.Join(err, fmt.Errorf("listing what runs have left: %w", findErr))
		}
		all = append(all, some...)
	}
	return all, err
}

func findStacks(ctx context.Context, a *account.Account) (found []resource, err error) {
	client := cloudformation.NewFromConfig(a.Config)
	pages := cloudformation.NewListStacksPaginator(client, &cloudformation.ListStacksInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		for _, s := range page.StackSummaries {
			if !a.Guard.Mine(aws.ToString(s.StackName)) || s.StackStatus == cfntypes.StackStatusDeleteComplete {
				continue
			}
			found = append(found, resource{"stack", *s.StackName, s.StackStatus == cfntypes.StackStatusDeleteInProgress, func(ctx context.Context) error {
				_, err := client.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: s.StackName})
				return err
			}})
		}
	}
	return found, nil
}

func newS3(a *account.Account) *s3.Client {
	return s3.NewFromConfig(a.Config, func(o *s3.Options) { o.UsePathStyle = true }) // the guard reads the path
}

func findBuckets(ctx context.Context, a *account.Account) (found []resource, err error) {
	client := newS3(a)
	pages := s3.NewListBucketsPaginator(client, &s3.ListBucketsInput{BucketRegion: &a.Region})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		for _, b := range page.Buckets {
			if a.Guard.Mine(aws.ToString(b.Name)) {
				found = append(found, resource{"bucket", *b.Name, false, func(ctx context.Context) error { return deleteBucket(ctx, a, client, b.Name) }})
			}
		}
	}
	return found, nil
}

// deleteBucket deletes a bucket and its objects. Our buckets have no versions.
func deleteBucket(ctx context.Context, a *account.Account, client *s3.Client, name *string) error {
	owner := &a.Number
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: name, ExpectedBucketOwner: owner})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: name, Key: o.Key, ExpectedBucketOwner: owner}); err != nil {
				return err
			}
		}
	}
	_, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: name, ExpectedBucketOwner: owner})
	if _, gone := errors.AsType[*s3types.NoSuchBucket](err); gone {
		return nil
	}
	return err
}

func findTables(ctx context.Context, a *account.Account) (found []resource, err error) {
	client := dynamodb.NewFromConfig(a.Config)
	pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		for _, name := range page.TableNames {
			if a.Guard.Mine(name) {
				found = append(found, resource{"table", name, false, func(ctx context.Context) error { return deleteTable(ctx, client, &name) }})
			}
		}
	}
	return found, nil
}

// deleteTable deletes a table, which takes several calls: while it is created, unprotected or deleted the next step waits.
func deleteTable(ctx context.Context, client *dynamodb.Client, name *string) error {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: name})
	if err == nil {
		switch {
		case out.Table.TableStatus != ddbtypes.TableStatusActive:
			return nil
		case aws.ToBool(out.Table.DeletionProtectionEnabled):
			_, err = client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: name, DeletionProtectionEnabled: aws.Bool(false)})
		default:
			_, err = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: name})
		}
	}
	if _, gone := errors.AsType[*ddbtypes.ResourceNotFoundException](err); gone {
		return nil
	}
	return err
}

func findQueues(ctx context.Context, a *account.Account) (found []resource, err error) {
	client := sqs.NewFromConfig(a.Config)
	pages := sqs.NewListQueuesPaginator(client, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("sqsonce-aws-"), MaxResults: aws.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		for _, url := range page.QueueUrls {
			name := path.Base(url)
			if !a.Guard.Mine(name) {
				continue
			}
			found = append(found, resource{"queue", name, false, func(ctx context.Context) error {
				_, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
				if _, gone := errors.AsType[*sqstypes.QueueDoesNotExist](err); gone {
					return nil
				}
				return err
			}})
		}
	}
	return found, nil
}
