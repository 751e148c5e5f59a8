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

// Client is the part of DynamoDB's API that a [Store] uses. [*dynamodb.Client] implements it.
//
// The store passes options with each call. They switch off the SDK's retries, because the store retries itself, and they
// read the time of the answer, by which the store knows that a lease has ended. A wrapper must pass the options on.
// Otherwise [Store.Check] and each acquire fail with an error that matches [sqsonce.ErrMisconfigured]. The store doesn't
// change other settings of the client.
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
	// MaxBatch is the most statements in a batch: see [Store].
	//
	// Default: 25, DynamoDB's limit. Limits: at most 25. With a negative value every write is a request of its own.
	MaxBatch int
	// Linger is the longest time that a write waits for others in its batch. It waits only if this process has another
	// delivery in progress.
	//
	// Default: 1 ms. Limits: with a negative value a write doesn't wait, and a batch holds only the writes of one instant.
	Linger time.Duration
	// Logger gets a warning, once, if the role doesn't allow statements, and the store sends every write singly.
	//
	// Default: slog.Default().
	Logger *slog.Logger

	// now is the host's clock. The times in leases and errors are times of this clock. After the first answer of DynamoDB only
	// the time that passes by it counts, not how it is set. time.Now but in tests.
	now func() time.Time
}

const defaultLinger = time.Millisecond

// Store keeps the records in a DynamoDB table. It is safe for concurrent use. You don't close it, and it doesn't keep
// goroutines between calls.
//
// # Batches
//
// The store sends acquires and completes of different events that come within a millisecond ([Options.Linger]) as one
// BatchExecuteStatement with up to 25 statements. With 64 busy handlers a message costs about a tenth of a request instead
// of two, and less CPU time in the client. The write units are the same.
//
//   - The store sends a delivery with a receive count above 1, a completion with a result, a renewal and a release singly.
//     It also sends the only statement of a batch singly.
//   - A delivery waits for others only if the store has another delivery in progress.
//   - A duplicate in a batch costs one read unit and one request more than a duplicate that is sent singly.
//   - An error of a statement is returned to its own caller only. After an unknown outcome the store sends each write again
//     singly, with the same values.
//
// # Frozen processes
//
// Lambda freezes a process between invocations. When a handler's context ends during an acquire, the delivery ends within
// 240 ms. By then the store has released the lease that was granted, if DynamoDB answers in time. If a process is frozen
// while acquires wait in a batch, it doesn't send the acquires whose lease has ended when it is thawed. After 20 s without
// a request the store doesn't use the idle connections again, with any client that uses net/http's transport. Each of them
// that broke in the meantime would cost a timeout.
//
// # Retries
//
// The store makes up to five attempts at a request, with jitter, which takes about a second and a half if failures are quick.
// It gives up a request without an answer after 2 s, then 4 s, 8 s, 10 s. The store retries throttling, server errors,
// broken connections and conflicts with transactions. The SDK's own retries are off for these requests. After an unknown
// outcome the next attempt repeats the same values, and the condition recognises the write of an earlier attempt.
//
// # Clocks
//
// DynamoDB's clock decides takeovers. The store learns it from the Date of the newest answer that has a request ID of
// DynamoDB (x-amzn-RequestId). A proxy must pass both headers on as they are. A lease ends for its holder before it ends
// for any other owner, which may take it over about 2 to 4 s after its end. The setting of a host's clock has one effect:
// before the first answer a host whose clock is ahead asks for a lease that is longer by as much. The check of signatures
// limits that to five minutes, and it delays only the takeover after a crash.
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
	_ dedup.Keeper   = (*Store)(nil)
	_ dedup.Lister   = (*Store)(nil)
)

// tableName is a table's name or its ARN.
var tableName = regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-z0-9-]+:dynamodb:[a-z0-9-]*:[0-9]*:table/[a-zA-Z0-9_.-]{3,255})$`)

// New returns a store on an existing table: see [CreateTable] and [Store.Check]. It doesn't send a request. The error joins
// one [*sqsonce.OptionError] for each invalid argument.
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
	case len(key) > maxKey:
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
