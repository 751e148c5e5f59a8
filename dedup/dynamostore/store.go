package dynamostore

import (
	"cmp"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/thaw"
)

// Options configure [New].
type Options struct {
	// Now is the host's clock; the times of leases and errors are in it. How it is set decides nothing once DynamoDB has
	// answered for the first time: only what passes by it since an answer counts. It should return a time with a
	// monotonic reading, as time.Now does. Default: time.Now.
	Now func() time.Time
	// MaxBatch is how many records of different events share one call: see the package documentation. Default: 25, which
	// is also the most; negative: each has calls of its own.
	MaxBatch int
	// Linger is how long a record waits for others to share its call; where no other delivery is at work it does not
	// wait. Default: 1 ms; negative: none, so that only what comes at the same instant is shared.
	Linger time.Duration
	// Logger gets what no error carries: that the role allows single calls only. Default: discard.
	Logger *slog.Logger
}

const defaultLinger = time.Millisecond

// Store keeps the records in a DynamoDB table. It is safe for concurrent use; there is nothing to close, and between
// calls it has no goroutine.
type Store struct {
	client Client
	table  string
	clock  *clock
	group  *group
	at     company
	conns  thaw.Conns
	meter  meter
}

var _ dedup.Store = (*Store)(nil)

// tableName is a table's name or its ARN.
var tableName = regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-z0-9-]+:dynamodb:[a-z0-9-]*:[0-9]*:table/[a-zA-Z0-9_.-]{3,255})$`)

// New returns a store on an existing table: see [CreateTable] and [Store.Check]. It makes no call. The error joins one
// [*sqsonce.FieldError] per argument that cannot be used.
func New(client Client, table string, optFns ...func(*Options)) (*Store, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	var errs []error
	if isNil(client) {
		errs = append(errs, fieldError("client", "is nil"))
	}
	if !tableName.MatchString(table) {
		errs = append(errs, fieldError("table", "is neither a table's name (3 to 255 of a-z, A-Z, 0-9, '_', '-' and '.') nor its ARN"))
	}
	o.MaxBatch = cmp.Or(o.MaxBatch, maxStatements)
	if o.MaxBatch > maxStatements {
		errs = append(errs, fieldError("Options.MaxBatch", "is over 25, DynamoDB's limit"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s := &Store{client: client, table: table, clock: newClock(o.Now)}
	s.group = &group{
		store: s, size: o.MaxBatch, linger: max(0, cmp.Or(o.Linger, defaultLinger)), texts: newStatements(table),
		logger: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
	}
	// A statement names its table by the name alone.
	s.group.off.Store(o.MaxBatch < 2 || strings.HasPrefix(table, "arn:"))
	return s, nil
}

// isNil also finds a nil *dynamodb.Client inside the interface.
func isNil(c Client) bool {
	if c == nil {
		return true
	}
	v := reflect.ValueOf(c)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func fieldError(field, problem string) error {
	return &sqsonce.FieldError{Package: "dynamostore", Field: field, Problem: problem}
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
