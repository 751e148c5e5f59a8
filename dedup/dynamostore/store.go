package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/thaw"
)

// Client is what a [Store] needs of DynamoDB. [*dynamodb.Client] implements it.
//
// The store passes options with each call: they switch off the SDK's retries, because the store retries itself, and they
// read the time of the answer, without which no lease would ever be over. A wrapper must pass the options on: otherwise
// [Store.Check] and each acquire fail with an error that matches [sqsonce.ErrMisconfigured]. The store changes no other
// setting of the client.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// Options configure [New].
type Options struct {
	// MaxBatch is the most statements in a batch: see the package documentation. Default: 25, DynamoDB's limit; negative:
	// no batches, every write is a request of its own.
	MaxBatch int
	// Linger is how long a write waits at most for others in its batch. It does not wait where this process has no other
	// delivery in progress. Default: 1 ms; negative: no wait, a batch holds only the writes of one instant.
	Linger time.Duration
	// Logger gets a warning, once, where the role does not allow statements, and the store sends every write singly. Default:
	// slog.Default().
	Logger *slog.Logger

	// now is the host's clock. The times in leases and errors are times of this clock. After the first answer of DynamoDB only
	// the time that passes by it counts, not how it is set. time.Now but in tests.
	now func() time.Time
}

const defaultLinger = time.Millisecond

// Store keeps the records in a DynamoDB table. It is safe for concurrent use. There is nothing to close, and between
// calls it has no goroutine.
type Store struct {
	client  Client
	table   string
	clock   *clock
	batcher *batcher
	peers   peers
	conns   thaw.Conns
	meter   meter
	away    atomic.Bool // no attempt of the last call was answered: see retry
}

var (
	_ dedup.Store    = (*Store)(nil)
	_ dedup.Reopener = (*Store)(nil)
	_ dedup.Lister   = (*Store)(nil)
)

// tableName is a table's name or its ARN.
var tableName = regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-z0-9-]+:dynamodb:[a-z0-9-]*:[0-9]*:table/[a-zA-Z0-9_.-]{3,255})$`)

// New returns a store on an existing table: see [CreateTable] and [Store.Check]. It sends no request. The error joins one
// [*sqsonce.OptionError] for each invalid argument.
func New(client Client, table string, optFns ...func(*Options)) (*Store, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if o.now == nil {
		o.now = time.Now
	}
	errs := checkTarget(client, table)
	o.MaxBatch = cmp.Or(o.MaxBatch, maxStatements)
	if o.MaxBatch > maxStatements {
		errs = append(errs, fieldError("Options.MaxBatch", "is more than 25, DynamoDB's limit"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s := &Store{client: client, table: table, clock: newClock(o.now)}
	s.batcher = &batcher{
		store: s, size: o.MaxBatch, linger: max(0, cmp.Or(o.Linger, defaultLinger)), texts: newStatementTexts(table),
		logger: host.QueuedLogger(o.Logger),
	}
	// PartiQL takes the name of a table, not its ARN.
	s.batcher.never = o.MaxBatch < 2 || strings.HasPrefix(table, "arn:")
	return s, nil
}

func checkTarget(client any, table string) []error {
	var errs []error
	if host.IsNil(client) {
		errs = append(errs, fieldError("client", "is nil"))
	}
	if !tableName.MatchString(table) {
		errs = append(errs, fieldError("table", "is neither a table's name (3 to 255 of a-z, A-Z, 0-9, '_', '-' and '.') nor its ARN"))
	}
	return errs
}

func fieldError(field, problem string) error {
	return &sqsonce.OptionError{Package: "dynamostore", Field: field, Problem: problem}
}

func checkKey(field, key string) error {
	switch {
	case key == "":
		return fieldError(field, "is empty")
	case len(key) > MaxKey:
		return fieldError(field, "is longer than 2,048 bytes")
	default:
		return nil
	}
}

func checkClaim(c dedup.Claim) error {
	var errs []error
	if err := checkKey("Claim.Key", c.Key); err != nil {
		errs = append(errs, err)
	}
	if c.Owner == "" {
		errs = append(errs, fieldError("Claim.Owner", "is empty"))
	}
	if c.Lease <= 0 {
		errs = append(errs, fieldError("Claim.Lease", "is not positive"))
	}
	return errors.Join(errs...)
}
