package dynamostore

import (
	"errors"
	"reflect"
	"regexp"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Options configure [New].
type Options struct {
	// Now is the host's clock; the times of leases and errors are in it. How it is set decides nothing once DynamoDB has
	// answered for the first time: only what passes by it since an answer counts. It should return a time with a
	// monotonic reading, as time.Now does. Default: time.Now.
	Now func() time.Time
}

// Store keeps the records in a DynamoDB table. It is safe for concurrent use; there is nothing to close, and between
// calls it has no goroutine.
type Store struct {
	client Client
	table  string
	clock  *clock
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
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Store{client: client, table: table, clock: newClock(o.Now)}, nil
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
