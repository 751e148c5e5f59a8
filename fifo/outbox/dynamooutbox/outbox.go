package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Client is the part of the DynamoDB client that an [Outbox] calls. [*dynamodb.Client] implements it.
//
// It must end a call when the call's context ends, which is after 10 s at the latest. It must also retry by itself, as the
// SDK's client does, because the outbox sends each request once. A call that panics, or returns neither an answer nor an error,
// fails.
type Client interface {
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// Outbox is one of the table's outboxes: the events of one queue. It is an [outbox.Store]. It is safe for concurrent use,
// doesn't need to be closed, and doesn't keep a goroutine between calls.
type Outbox struct {
	client Client
	caller caller
	table  string
	source string
	prefix string // of the partition keys: the outbox's name and '#'
	probes atomic.Int64
}

var _ outbox.Store = (*Outbox)(nil)

var (
	// tableName is a table's name or its ARN.
	tableName = regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-z0-9-]+:dynamodb:[a-z0-9-]*:[0-9]*:table/[a-zA-Z0-9_.-]{3,255})$`)
	// outboxName has no '#', which ends the name in a partition key.
	outboxName = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,64}$`)
	// sourceName is what fifo.NewPublisher takes for a namespace.
	sourceName = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,48}$`)
)

// New returns the outbox of that name, 1 to 64 of A-Z a-z 0-9 . _ / -, in a table that [CreateTable] has made. source is the
// namespace of the publisher that the relay will use. Both are part of the stored events. An outbox of another name is another
// outbox, and a relay doesn't send events of another source.
//
// New doesn't send a request. The error joins one [*sqsonce.OptionError] for each bad argument.
func New(c Client, table, name, source string) (*Outbox, error) {
	errs := checkTarget(c, table)
	if !outboxName.MatchString(name) {
		errs = append(errs, fieldError("name", "is %.80q, must be 1 to 64 of A-Z a-z 0-9 . _ / -", name))
	}
	if !sourceName.MatchString(source) {
		errs = append(errs, fieldError("source", "is %.80q, must be 1 to 48 of A-Z a-z 0-9 . _ : / -, the publisher's namespace", source))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Outbox{client: c, table: table, source: source, prefix: name + "#"}, nil
}

func checkTarget(client any, table string) []error {
	var errs []error
	if host.IsNil(client) {
		errs = append(errs, fieldError("client", "is nil"))
	}
	if !tableName.MatchString(table) {
		errs = append(errs, fieldError("table", "is %.80q, must be a table's name (3 to 255 of a-z A-Z 0-9 _ - .) or its ARN", table))
	}
	return errs
}

func fieldError(field, format string, args ...any) error {
	return &sqsonce.OptionError{Package: "dynamooutbox", Field: field, Problem: fmt.Sprintf(format, args...)}
}

func checkLimit(limit int) error {
	if limit < 1 {
		return fieldError("limit", "is %d, must be positive", limit)
	}
	return nil
}

// Source returns the namespace that the events are written for. [outbox.NewRelay] refuses a publisher with another one.
func (o *Outbox) Source() string { return o.source }

// Claim implements [outbox.Store]. It returns all groups, because the groups of a shard's records reach one relay as a rule,
// and a sweep leaves young ones alone.
func (o *Outbox) Claim(ctx context.Context, groups []string, _ time.Duration) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return groups, nil
}

// Unclaim implements [outbox.Store]. The outbox doesn't use claims, so it only returns nil.
func (o *Outbox) Unclaim(context.Context, []string) error { return nil }

func (o *Outbox) partition(group string) string { return o.prefix + group }

// groupOf returns the group of a partition key, and false for one of another outbox.
func (o *Outbox) groupOf(pk string) (group string, ours bool) { return strings.CutPrefix(pk, o.prefix) }
