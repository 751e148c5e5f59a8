package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// errorKind is what an error says to a host.
type errorKind string

const (
	unavailable   errorKind = "unavailable"
	misconfigured errorKind = "misconfigured"
	ofTheMessage  errorKind = "of the message"
)

func kindOf(err error) errorKind {
	switch {
	case errors.Is(err, sqsonce.ErrMisconfigured) && errors.Is(err, sqsonce.ErrUnavailable):
		return misconfigured
	case errors.Is(err, sqsonce.ErrUnavailable):
		return unavailable
	case err != nil:
		return ofTheMessage
	}
	return "none"
}

// wantKinds makes every call of the contract with a store whose every request fails.
func (b *bed) wantKinds(s *Store, want errorKind) {
	b.Helper()
	l := dedup.Lease{Key: testKey, Owner: "a", Fence: 1}
	_, batched := acquireAll(b.Context(), s, claimsOf(2))
	for op, err := range map[string]error{
		"acquire, batched": batched[0],
		"acquire":          second(granted.Lease(s.Acquire(b.Context(), claim("a")))),
		"renew":            second(s.Renew(b.Context(), l, lease)),
		"complete":         s.Complete(b.Context(), l, dedup.Result{}),
		"release":          s.Release(b.Context(), l, nil),
	} {
		if got := kindOf(err); got != want {
			b.Errorf("%s: got %v, which is %s, want %s", op, err, got, want)
		}
	}
}

// What no message causes is unavailable, and what no retry mends is misconfigured too.
func TestKindsOfAnswers(t *testing.T) {
	t.Parallel()
	for want, codes := range map[errorKind]string{ // denied: also a KMS key; in use: the table is being created or deleted
		misconfigured: "ResourceNotFoundException AccessDeniedException UnrecognizedClientException InvalidSignatureException" +
			" ExpiredTokenException MissingAuthenticationTokenException NotAuthorized OptInRequired SubscriptionRequiredException" +
			" RequestExpired UnknownOperationException InvalidAction",
		unavailable: "ThrottlingException ProvisionedThroughputExceededException RequestLimitExceeded TransactionConflictException" +
			" InternalServerError ResourceInUseException ReplicatedWriteConflictException LimitExceededException ValidationException" +
			" RequestEntityTooLarge ItemCollectionSizeLimitExceededException",
	} {
		for code := range strings.FieldsSeq(codes) {
			runBed(t, code, func(t *testing.T, b *bed) {
				s := b.storeWithPeer()
				b.faults(fault.Rule{Prob: 1, Do: fault.Error, Code: code})
				b.wantKinds(s, want)
			})
		}
	}
}

// answerTo is DynamoDB's answer to a request.
func answerTo(r *http.Request, status int, body string) *http.Response {
	h := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, requestID: {"1"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// refusal is the body of an error.
func refusal(code, message string) string {
	return fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, code, message)
}

// What the service's other answers say of their kind is in their text or their status.
func TestKindsOfTexts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status     int
		code, text string
		want       errorKind
	}{
		"another key schema":  {400, "ValidationException", "The provided key element does not match the schema", misconfigured},
		"item too large":      {400, "ValidationException", "Item size to update has exceeded the maximum allowed size", unavailable},
		"fails, no code":      {400, "", "", unavailable},
		"denied, new code":    {403, "SomethingNew", "no", misconfigured},
		"fails, new code":     {500, "SomethingNew", "no", unavailable},
		"service unavailable": {503, "ServiceUnavailable", "no", unavailable},
	} {
		must.Run(t, name, func(t *testing.T) {
			b := &bed{T: t}
			s := must.Get(New(b.client(transport(func(r *http.Request) (*http.Response, error) {
				if tt.code == "" {
					return answerTo(r, tt.status, "{}"), nil
				}
				return answerTo(r, tt.status, refusal(tt.code, tt.text)), nil
			})), testTable))(t)
			b.wantKinds(s, tt.want)
		})
	}
}

// TestThrottlingReasons: DynamoDB names the limit that throttled a request in a field beside the text. The error has
// both.
func TestThrottlingReasons(t *testing.T) {
	t.Parallel()
	const resource = "arn:aws:dynamodb:us-east-1:000000000000:table/records"
	for code, field := range map[string]string{
		"ThrottlingException": "throttlingReasons", "ProvisionedThroughputExceededException": "ThrottlingReasons", "RequestLimitExceeded": "ThrottlingReasons",
	} {
		runBed(t, code, func(t *testing.T, b *bed) {
			body := strings.TrimSuffix(refusal(code, "slow down"), "}") + fmt.Sprintf(
				`,%q:[{"reason":"TableWriteKeyRangeThroughputExceeded","resource":%q},{}]}`, field, resource)
			s := must.Get(New(b.client(transport(func(r *http.Request) (*http.Response, error) {
				return answerTo(r, 400, body), nil
			})), testTable))(t)
			_, err := s.Inspect(t.Context(), "key")
			for _, want := range []string{"TableWriteKeyRangeThroughputExceeded of " + resource, "slow down"} {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), " of :") {
					t.Errorf("error %v, want it to have %q", err, want)
				}
			}
			if kindOf(err) != unavailable {
				t.Errorf("error %v is %s, want unavailable", err, kindOf(err))
			}
		})
	}
}

// describedTable is a client that describes a table in a status.
type describedTable struct {
	Client
	status ddbtypes.TableStatus
}

func (d describedTable) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, optFns ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := d.Client.DescribeTable(ctx, in, optFns...)
	if err == nil {
		out.Table.TableStatus = d.status
	}
	return out, err
}

// A table that takes no requests is found by Check.
func TestCheckOfAStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[ddbtypes.TableStatus]error{
		ddbtypes.TableStatusActive:                            nil,
		ddbtypes.TableStatusUpdating:                          nil,
		ddbtypes.TableStatusCreating:                          ErrNoTable,
		ddbtypes.TableStatusDeleting:                          ErrNoTable,
		ddbtypes.TableStatusInaccessibleEncryptionCredentials: ErrAccessDenied,
		ddbtypes.TableStatusArchived:                          ErrAccessDenied,
	} {
		runBed(t, string(status), func(t *testing.T, b *bed) {
			s := must.Get(New(describedTable{b.client(b.srv), status}, testTable))(t)
			if err := s.Check(t.Context()); !errors.Is(err, want) || want != nil && kindOf(err) != misconfigured {
				t.Errorf("Check: got error %v, want %v", err, want)
			}
		})
	}
}

// transport is a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A network that does not reach DynamoDB is unavailable, however it says so.
func TestKindsOfNetworkErrors(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]transport{
		"refused connection": func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
		"name not resolved": func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "dynamodb", IsNotFound: true}}
		},
		"503 of a load balancer": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html>")), Request: r}, nil
		},
		"no answer": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
	} {
		must.Run(t, name, func(t *testing.T) {
			b := &bed{T: t}
			s := must.Get(New(b.client(f), testTable))(t)
			b.wantKinds(s, unavailable)
		})
	}
}

// Without credentials, a Region or an endpoint no request is sent. That is misconfigured, unless who gives the credentials is away.
func TestKindsOfMissingCredentials(t *testing.T) {
	t.Parallel()
	given, region := errors.New("no error"), dynamodb.Options{Region: "us-east-1"}
	for name, tt := range map[string]struct {
		o    dynamodb.Options
		err  error
		want errorKind
	}{
		"no Region":              {dynamodb.Options{}, given, misconfigured},
		"bad endpoint":           {dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String("://")}, given, misconfigured},
		"none":                   {region, errors.New("no credentials"), misconfigured},
		"role denied":            {region, &smithy.GenericAPIError{Code: "AccessDenied", Message: "sts:AssumeRole", Fault: smithy.FaultClient}, misconfigured},
		"provider throttles":     {region, &smithy.GenericAPIError{Code: "Throttling", Fault: smithy.FaultClient}, unavailable},
		"provider fails":         {region, &smithy.GenericAPIError{Code: "InternalFailure", Fault: smithy.FaultServer}, unavailable},
		"provider not reached":   {region, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, unavailable},
		"provider never answers": {region, nil, unavailable},
	} {
		must.Run(t, name, func(t *testing.T) {
			sent := 0
			tt.o.HTTPClient = &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				sent++
				return nil, errors.New("sent")
			})}
			tt.o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
				switch tt.err {
				case nil:
					<-ctx.Done()
					return aws.Credentials{}, ctx.Err()
				case given:
					return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
				}
				return aws.Credentials{}, tt.err
			})
			s := must.Get(New(dynamodb.New(tt.o), testTable))(t)
			start := time.Now()
			(&bed{T: t}).wantKinds(s, tt.want)
			cure := map[string]string{"": "set AWS_REGION", "us-east-1": "check the credentials"}[tt.o.Region]
			if err := s.Check(t.Context()); tt.want == misconfigured && !strings.Contains(err.Error(), cure) {
				t.Errorf("%v does not name the cure", err)
			}
			if took := time.Since(start); sent > 0 || took > time.Second && tt.err != nil {
				t.Errorf("%d requests in %s, want none, and no retries", sent, took)
			}
		})
	}
}

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// A role that allows no statements costs ten times as many requests: that is said without an Options.Logger too. Not parallel.
func TestWarningWithoutALogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(New(&dynamodb.Client{}, "dedup"))(t)
		s.batcher.disable("AccessDeniedException")
	}) // it waits for the log
	if !strings.Contains(log.String(), "batches are off") {
		t.Errorf("logged %q, want the warning", &log)
	}
}
