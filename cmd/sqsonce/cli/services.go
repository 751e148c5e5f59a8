package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	eventbridge "github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// services are AWS's, in one Region.
type services struct {
	region string
	sqs    *sqs.Client
	dynamo *dynamodb.Client
	caller func(context.Context) (arn string, err error) // who has the credentials

	// For what looks at a deployment. Nil in tests that have none.
	lambda     *lambda.Client
	iam        *iam.Client
	cloudwatch *cloudwatch.Client
	sts        *sts.Client
	scheduler  *eventbridge.Client
}

// connect uses AWS's environment variables and profiles.
func connect(ctx context.Context) (*services, error) {
	// What the SDK logs goes to standard error, over what is drawn on a terminal; what matters of it is in the errors too.
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fail(exitUsage, "AWS's configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, fail(exitUsage, "no Region: set AWS_REGION, or AWS_PROFILE to a profile that has one")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fail(exitDenied, "no credentials: set AWS_PROFILE, or run aws sso login, or see https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html: %w", err)
	}
	caller := func(ctx context.Context) (string, error) {
		out, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.Arn), nil
	}
	return &services{
		region: cfg.Region, sqs: sqs.NewFromConfig(cfg), dynamo: dynamodb.NewFromConfig(cfg), caller: caller,
		lambda: lambda.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg), cloudwatch: cloudwatch.NewFromConfig(cfg), sts: sts.NewFromConfig(cfg),
		scheduler: eventbridge.NewFromConfig(cfg),
	}, nil
}

// impatient are the services for what asks again by itself, or while a person waits: why one does not answer is known
// within a second, and no answer fills the memory.
func (s *services) impatient() *services {
	quick := *s
	quick.sqs = sqs.New(s.sqs.Options(), func(o *sqs.Options) { o.Retryer, o.HTTPClient = awserr.Retryer(), awserr.Limited(o.HTTPClient) })
	if s.cloudwatch != nil {
		protocol := s.cloudwatch.Options().Protocol // which New sets to its default
		quick.cloudwatch = cloudwatch.New(s.cloudwatch.Options(), func(o *cloudwatch.Options) {
			o.Retryer, o.HTTPClient, o.Protocol = awserr.Retryer(), awserr.Limited(o.HTTPClient), protocol
		})
	}
	return &quick
}

// once makes the consumer's keys. Its warnings about messages are the consumer's.
func (a *app) once(store Store, key func(*sqsonce.Message) (string, error)) (*dedup.Once, error) {
	return dedup.New(store, a.flags.consumer, func(o *dedup.Options) {
		o.Key, o.TrustDedupID, o.Retention = key, a.opts.TrustDedupID, time.Duration(a.flags.retention)
		o.Logger = slog.New(slog.DiscardHandler)
	})
}

// recordKey returns the key of the record that an argument names: the key itself, or with --consumer the event's.
func (a *app) recordKey(store Store, arg string) (string, error) {
	consumer := a.flags.consumer
	switch {
	case arg == "":
		return "", fail(exitUsage, "the key is empty")
	case consumer == "" && !strings.Contains(arg, "#"):
		return "", fail(exitUsage, "%q is not a record's key (consumer, #, event's key): set --consumer too", arg)
	case consumer == "" || strings.HasPrefix(arg, consumer+"#"):
		return arg, nil
	}
	once, err := a.once(store, func(*sqsonce.Message) (string, error) { return arg, nil })
	if err != nil {
		return "", err
	}
	return once.Key(&sqsonce.Message{})
}

// recordKeys returns the keys of records that arguments name, each once. One that is - stands for the lines of standard input.
func (a *app) recordKeys(store Store, args []string) (keys []string, err error) {
	if len(args) == 1 && args[0] == "-" {
		if !a.flags.yes && !a.flags.dryRun {
			return nil, fail(exitUsage, "standard input has the keys, and cannot answer: set --yes or --dry-run")
		}
		text, err := io.ReadAll(a.in)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		if args = keyLines(text); args == nil {
			return nil, fail(exitUsage, "standard input has no keys")
		}
	}
	return a.keysOf(store, args)
}

// keyLines are the lines of a list of keys that are not empty.
func keyLines(text []byte) (lines []string) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// keysOf returns the keys that words or lines name, each once.
func (a *app) keysOf(store Store, args []string) (keys []string, err error) {
	for _, arg := range args {
		key, err := a.recordKey(store, arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// openDLQ opens the dead-letter queue that the flags name, joined with records where a consumer is named.
func (a *app) openDLQ(ctx context.Context) (*ops.DLQ, string, error) {
	if a.flags.queue == "" && a.flags.dlq == "" {
		return nil, "", fail(exitUsage, "which queue? Set --queue, --dlq or SQSONCE_QUEUE")
	}
	join, err := a.join(ctx)
	if err != nil {
		return nil, "", err
	}
	s, err := a.connect(ctx)
	if err != nil {
		return nil, "", err
	}
	url, source, err := s.deadLetterURL(ctx, a.flags.queue, a.flags.dlq)
	if err != nil {
		return nil, "", err
	}
	d, err := ops.Open(ctx, s.sqs, url, join, func(o *ops.Options) {
		o.NoOpenEnvelope, o.Retention, o.Source = a.opts.NoOpenEnvelope, time.Duration(a.flags.retention), a.flags.source
		o.S3, o.NoS3 = a.flags.s3.yes || a.opts.S3 && !a.flags.s3.no, a.flags.s3.no
		o.NotDeadLetter, o.SpendReceives, o.Hold = a.flags.notDeadLetter, a.flags.spendReceives, a.flags.hold
		if source != "" {
			o.Sources = []string{source}
		}
	})
	return d, url, err
}

// join returns the option that joins messages with the consumer's records.
func (a *app) join(ctx context.Context) (func(*ops.Options), error) {
	if a.flags.consumer == "" {
		a.note("no --consumer: the records of the events are not read")
		return func(*ops.Options) {}, nil
	}
	store, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	once, err := a.once(store, a.opts.Key)
	if err != nil {
		return nil, err
	}
	return func(o *ops.Options) {
		o.Key, o.Store, o.SameKeys = once.Key, store, a.flags.sameKeys
		if a.opts.Key == nil {
			o.Consumer = a.flags.consumer
		}
	}, nil
}

// deadLetterURL returns the URL of dlq, else that of the dead-letter queue of queue, and the ARN of that queue.
func (s *services) deadLetterURL(ctx context.Context, queue, dlq string) (url, source string, err error) {
	if dlq != "" {
		url, err = s.queueURL(ctx, dlq)
		return url, "", err
	}
	if url, err = s.queueURL(ctx, queue); err != nil {
		return "", "", err
	}
	out, err := s.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameRedrivePolicy, sqstypes.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return "", "", err
	}
	arn := ""
	if text := out.Attributes[string(sqstypes.QueueAttributeNameRedrivePolicy)]; text != "" {
		if arn, _, err = host.ParseRedrivePolicy(text); err != nil {
			return "", "", err
		}
	}
	if arn == "" {
		return "", "", fail(exitRefused, "queue %s has no redrive policy, so no dead-letter queue. If it is a dead-letter queue itself: --dlq %s", queue, queue)
	}
	url, err = s.queueURL(ctx, arn)
	return url, out.Attributes[string(sqstypes.QueueAttributeNameQueueArn)], err
}

// queueURL returns the URL of the queue with a name, URL or ARN.
func (s *services) queueURL(ctx context.Context, queue string) (string, error) {
	in := &sqs.GetQueueUrlInput{QueueName: &queue}
	arn, err := host.ParseQueueARN(queue)
	isARN := err == nil
	isURL := !isARN && (strings.Contains(queue, "/") || host.QueueURLProblem("https://sqs/"+queue) != "") // what cannot be a name
	if isURL {
		if problem := host.QueueURLProblem(queue); problem != "" {
			return "", fail(exitUsage, "the queue's URL %s", problem)
		}
		arn, _ = host.ARNOfURL(queue) // an emulator's has no Region
	}
	if arn.Region != "" && arn.Region != s.region {
		return "", fail(exitFailed, "queue %s is in %s, and the configured Region is %s: set AWS_REGION", queue, arn.Region, s.region)
	}
	if isURL {
		return queue, nil
	}
	if isARN {
		in.QueueName, in.QueueOwnerAWSAccountId = &arn.Name, &arn.Account
	}
	out, err := s.sqs.GetQueueUrl(ctx, in)
	if _, missing := errors.AsType[*sqstypes.QueueDoesNotExist](err); missing {
		return "", fail(exitFailed, "queue %s does not exist in %s, or its policy hides it from these credentials", queue, s.region)
	}
	if err != nil {
		return "", err
	}
	if aws.ToString(out.QueueUrl) == "" {
		return "", fmt.Errorf("sqs:GetQueueUrl: the answer about %s has no URL", queue)
	}
	return *out.QueueUrl, nil
}
