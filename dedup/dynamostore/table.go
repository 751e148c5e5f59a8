package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ddberror"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// tableWait limits how long CreateTable waits for the table. DynamoDB takes seconds.
const tableWait = 2 * time.Minute

// tableDescriber is the part of DynamoDB's API that Check uses.
type tableDescriber interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// CreateTable creates a table for a [Store], billed on demand, waits at most 2 min until it is active, and enables TTL on
// it. You can repeat it. If a table of that name exists and has the right key, CreateTable uses it, and enables TTL if it
// is off. For a table that can't be used CreateTable returns [sqsonce.ErrMisconfigured] with the problem. For an invalid
// argument it returns a [*sqsonce.OptionError].
//
// Create production tables with the tool of your infrastructure. The package documentation has the schema.
func CreateTable(ctx context.Context, client *dynamodb.Client, table string) error {
	if err := errors.Join(checkTarget(client, table)...); err != nil {
		return err
	}
	s := &Store{table: table, clock: newClock(time.Now)} // describes the table, and writes nothing
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(table),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String(attrID), AttributeType: ddbtypes.ScalarAttributeTypeS}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String(attrID), KeyType: ddbtypes.KeyTypeHash}},
	})
	// In use: another process was first, or the SDK repeated a request whose reply was lost.
	if _, exists := errors.AsType[*ddbtypes.ResourceInUseException](err); err != nil && !exists {
		return s.explain("create table", err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 200*time.Millisecond, 5*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)}, tableWait); err != nil {
		return s.explain("wait for table", err)
	}
	if err := s.check(ctx, client); !errors.Is(err, ddberror.ErrTTL) || errors.Is(err, ddberror.ErrKeySchema) {
		return err
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(table),
		TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String(TTLAttribute), Enabled: aws.Bool(true)},
	})
	if err != nil {
		// Another process that runs CreateTable has enabled it first.
		if s.check(ctx, client) == nil {
			return nil
		}
		return &tableError{Table: table, Problem: ddberror.ErrTTL, Detail: "it cannot be enabled", Err: err}
	}
	return s.check(ctx, client)
}

// Check asks DynamoDB whether the table can be used. The table must exist and have a status in which it accepts requests.
// Its key must be the string attribute id alone, and TTL must be enabled on [TTLAttribute]. Without TTL records are never
// deleted. The error joins one error for each problem. If the table can be used and the answers did not bring DynamoDB's
// time, Check returns an error that matches [sqsonce.ErrMisconfigured]: see [Client].
//
// Check needs the permissions dynamodb:DescribeTable and dynamodb:DescribeTimeToLive. The store's other methods don't need
// them. Call Check at start, or in a test of the deployment.
func (s *Store) Check(ctx context.Context) error {
	if err := s.check(ctx, s.client); err != nil {
		return err
	}
	return s.checkTime()
}

func (s *Store) check(ctx context.Context, client tableDescriber) error {
	var (
		table *dynamodb.DescribeTableOutput
		ttl   *dynamodb.DescribeTimeToLiveOutput
	)
	err := s.retry(ctx, func(ctx context.Context, options func(*dynamodb.Options)) (err error) {
		table, err = client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(s.table)}, options)
		return err
	})
	if err != nil {
		return s.explain("describe table", err)
	}
	err = s.retry(ctx, func(ctx context.Context, options func(*dynamodb.Options)) (err error) {
		ttl, err = client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(s.table)}, options)
		return err
	})
	if err != nil {
		return s.explain("describe TTL", err)
	}
	return errors.Join(s.checkStatus(table.Table), s.checkKeySchema(table.Table), s.checkTTL(ttl.TimeToLiveDescription))
}

// checkStatus refuses a table that takes no requests: it is not made yet, or goes, or its KMS key is not accessible.
func (s *Store) checkStatus(t *ddbtypes.TableDescription) error {
	if t == nil || t.TableStatus == ddbtypes.TableStatusActive || t.TableStatus == ddbtypes.TableStatusUpdating {
		return nil
	}
	problem := ErrNoTable
	if t.TableStatus != ddbtypes.TableStatusCreating && t.TableStatus != ddbtypes.TableStatusDeleting {
		problem = ErrAccessDenied
	}
	return &tableError{Table: s.table, Problem: problem, Detail: "its status is " + string(t.TableStatus)}
}

func (s *Store) checkKeySchema(t *ddbtypes.TableDescription) error {
	if t == nil {
		return &tableError{Table: s.table, Problem: ddberror.ErrKeySchema, Detail: "no description"}
	}
	var found []string
	ok := len(t.KeySchema) == 1
	for _, k := range t.KeySchema {
		name, kind := aws.ToString(k.AttributeName), ddbtypes.ScalarAttributeType("?")
		for _, a := range t.AttributeDefinitions {
			if aws.ToString(a.AttributeName) == name {
				kind = a.AttributeType
			}
		}
		ok = ok && name == attrID && k.KeyType == ddbtypes.KeyTypeHash && kind == ddbtypes.ScalarAttributeTypeS
		found = append(found, fmt.Sprintf("%s %s %s", name, kind, k.KeyType))
	}
	if ok {
		return nil
	}
	return &tableError{Table: s.table, Problem: ddberror.ErrKeySchema, Detail: fmt.Sprintf("found %q", found)}
}

func (s *Store) checkTTL(d *ddbtypes.TimeToLiveDescription) error {
	e := &tableError{Table: s.table, Problem: ddberror.ErrTTL}
	if d == nil {
		return e
	}
	on := d.TimeToLiveStatus == ddbtypes.TimeToLiveStatusEnabled || d.TimeToLiveStatus == ddbtypes.TimeToLiveStatusEnabling
	if on && aws.ToString(d.AttributeName) == TTLAttribute {
		return nil
	}
	e.Detail = string(d.TimeToLiveStatus)
	if d.AttributeName != nil {
		e.Detail += " on " + *d.AttributeName
	}
	return e
}

// These errors are problems of a table. They also match [sqsonce.ErrMisconfigured], because a retry doesn't help.
var (
	ErrNoTable      = errors.New("the table does not exist")
	ErrTTL          = ddberror.ErrTTL // a table with MRSC never has TTL
	ErrAccessDenied = errors.New("access denied")
)

// tableError says why the table can't be used. A retry doesn't help, so it matches [sqsonce.ErrMisconfigured].
type tableError struct {
	// Table is the store's table.
	Table string
	// Problem is ErrNoTable, ErrTTL, ErrAccessDenied or ddberror.ErrKeySchema.
	Problem error
	// Detail is the operation, or the value that was found instead. It may be empty.
	Detail string
	// Err is DynamoDB's error. It may be nil.
	Err error
}

// Is reports a match with [sqsonce.ErrMisconfigured] and [sqsonce.ErrUnavailable].
func (e *tableError) Is(target error) bool {
	return target == sqsonce.ErrMisconfigured || target == sqsonce.ErrUnavailable
}

func (e *tableError) Error() string {
	s := fmt.Sprintf("dynamostore: table %s: %v", e.Table, e.Problem)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	if e.Problem == ErrNoTable && e.Err != nil { // else it is being made, or deleted
		s += ": check AWS_REGION and the account, or create it: aws dynamodb create-table --table-name " + e.Table + " --billing-mode PAY_PER_REQUEST" +
			" --attribute-definitions AttributeName=" + attrID + ",AttributeType=S --key-schema AttributeName=" + attrID + ",KeyType=HASH, and then" +
			" aws dynamodb update-time-to-live --table-name " + e.Table + " --time-to-live-specification Enabled=true,AttributeName=" + TTLAttribute
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the problem and DynamoDB's error.
func (e *tableError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Problem}
	}
	return []error{e.Problem, e.Err}
}

// accessCodes are the codes of denied access. Not all of them have the HTTP status 403.
var accessCodes = map[string]bool{
	"AccessDenied": true, "AccessDeniedException": true, "ExpiredToken": true, "ExpiredTokenException": true,
	"IncompleteSignature": true, "IncompleteSignatureException": true, "InvalidSignatureException": true,
	"MissingAuthenticationToken": true, "MissingAuthenticationTokenException": true, "SignatureDoesNotMatch": true,
	"UnrecognizedClientException": true, "InvalidClientTokenId": true, "NotAuthorized": true,
	// The Region, or the account, is not enabled. The signature is too old by the host's clock.
	"OptInRequired": true, "SubscriptionRequiredException": true, "RequestExpired": true,
}

// endpointCodes are the codes of an endpoint that is not DynamoDB.
var endpointCodes = map[string]bool{"UnknownOperationException": true, "InvalidAction": true}

// explain gives an operation's final error its type and its name. Any error but a refused value and a record that is none
// matches sqsonce.ErrUnavailable, whatever DynamoDB answered.
func (s *Store) explain(op string, err error) error {
	err = s.named(op, err)
	_, refused := errors.AsType[*sqsonce.OptionError](err)
	if err == nil || refused || errors.Is(err, dedup.ErrRecord) || errors.Is(err, sqsonce.ErrUnavailable) {
		return err
	}
	return sqsonce.Unavailable(err)
}

// named gives an error its type and its name. A KMS key that is disabled, or that the role may not use, is
// AccessDeniedException as denied access to the table is, with KMS's text.
func (s *Store) named(op string, err error) error {
	problem := error(nil)
	op += ddberror.Limits(err)
	api, isAPI := errors.AsType[smithy.APIError](err)
	response, _ := errors.AsType[*smithyhttp.ResponseError](err)
	switch {
	case err == nil:
		return nil
	case isMissing(err):
		problem = ErrNoTable
	case isAPI && accessCodes[api.ErrorCode()], response != nil && response.HTTPStatusCode() == http.StatusForbidden:
		problem = ErrAccessDenied
	// The one ValidationException that is about the table. AWS has no code of its own for it.
	case isAPI && api.ErrorCode() == "ValidationException" && strings.Contains(api.ErrorMessage(), "key element does not match the schema"):
		problem = ddberror.ErrKeySchema
	}
	unsent, _ := errors.AsType[*unsentError](err)
	switch {
	case unsent != nil && unsent.misconfigured():
		region := "of a client that does not say"
		if c, ok := s.client.(*dynamodb.Client); ok {
			region = c.Options().Region
		}
		return fmt.Errorf("%w: dynamostore: %s: no request could be sent: %s: %w", sqsonce.ErrMisconfigured, op, sdkhttp.Cure(region, err), err)
	case isAPI && endpointCodes[api.ErrorCode()]:
		return fmt.Errorf("%w: dynamostore: %s: %w", sqsonce.ErrMisconfigured, op, err)
	case problem != nil:
		return &tableError{Table: s.table, Problem: problem, Detail: op, Err: err}
	}
	return fmt.Errorf("dynamostore: %s: %w", op, err)
}

func isMissing(err error) bool {
	_, missing := errors.AsType[*ddbtypes.ResourceNotFoundException](err)
	return missing
}
