package s3payload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/internal/thaw"
)

// Getter is the part of the S3 client that [Resolve] calls. A call, and a read of its answer's body, must end when the call's
// context ends. A panic in either is a failure of the message.
type Getter interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// Putter is the part of the S3 client that a [Publisher] calls. A call must end when its context ends. A call that panics has
// failed.
type Putter interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

var (
	_ Getter = (*s3.Client)(nil)
	_ Putter = (*s3.Client)(nil)
)

const (
	defaultMaxBytes = 16 << 20
	// mostBytes is the largest object of AWS's extended clients, 2 GiB, less a byte: the longest string of a 32-bit system.
	mostBytes      = 1<<31 - 1
	defaultTimeout = time.Minute
)

// errSlow says that a call's context ended while the body of S3's answer was read.
var errSlow = errors.New("the object was not read")

var errNoAnswer = errors.New("the client returned neither an answer nor an error: correct the wrapper that was given as the client")

// calls are calls of the user's client.
type calls struct {
	timeout time.Duration
	conns   thaw.Conns // a call does not use a connection from before a freeze of the process
}

// do calls f. When ctx or the timeout ends, the error is that of the handler's or caller's context, or says how long the
// timeout was.
func (c *calls) do(ctx context.Context, f func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer for %v", c.timeout))
	defer cancel()
	err := c.conns.Do(limited, func(ctx context.Context) error {
		return host.Contain(func() error { return f(ctx) })
	})
	if err != nil && limited.Err() != nil {
		return fmt.Errorf("%w: %v", context.Cause(limited), err)
	}
	return err
}

// misconfiguredCodes say that every message with a pointer fails until a person changes a setting. AccessDenied is not one of
// them, because S3 answers it for a missing object too, to a role without s3:ListBucket.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
var misconfiguredCodes = map[string]bool{
	"NoSuchBucket": true, "PermanentRedirect": true, "AuthorizationHeaderMalformed": true, "InvalidAccessKeyId": true,
	"SignatureDoesNotMatch": true, "ExpiredToken": true, "InvalidToken": true, "RequestTimeTooSkewed": true,
	"AccountProblem": true, "NotSignedUp": true,
}

// withEvidence makes an error of a call say whether S3 has answered: else a refused role, which credentials come from, looks
// like a missing object.
func withEvidence(o *s3.Options) { o.APIOptions = append(o.APIOptions, sdkhttp.Evidence) }

// explain gives the failure of a read its type. ctx is the handler's.
func explain(ctx context.Context, p pointer, err error) error {
	api, answered := errors.AsType[smithy.APIError](err)
	_, panicked := errors.AsType[*sqsonce.PanicError](err)
	_, content := errors.AsType[*contentError](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return settle.NotRun(fmt.Errorf("s3payload: read %v: %w", p, err))
	case panicked, content, errors.Is(err, errNoAnswer):
		return fmt.Errorf("s3payload: read %v: %w", p, err)
	case errors.Is(err, errTooLarge), errors.Is(err, errSize), errors.Is(err, errTooSlow):
		return fmt.Errorf("%w: %v", err, p)
	case sdkhttp.Unanswered(err), isAway(api, err), !answered && !sdkhttp.Answered(err): // no message causes that
		return sqsonce.Unavailable(fmt.Errorf("s3payload: read %v: %w", p, err))
	case !answered: // S3's answer, and unreadable
		return fmt.Errorf("s3payload: read %v: %w", p, err)
	case misconfiguredCodes[api.ErrorCode()]:
		return fmt.Errorf("%w: s3payload: read %v: %w", sqsonce.ErrMisconfigured, p, err)
	case api.ErrorCode() == "NoSuchKey", api.ErrorCode() == "NotFound":
		return fmt.Errorf("%w: %v: %w", ErrNoObject, p, err)
	case api.ErrorCode() == "AccessDenied":
		return fmt.Errorf("s3payload: read %v: the object may be missing (allow s3:ListBucket to tell), or the role lacks s3:GetObject, or kms:Decrypt for its key: %w", p, err)
	}
	return fmt.Errorf("s3payload: read %v: %w", p, err)
}

// isAway reports whether an answer says that S3 throttles or fails.
func isAway(api smithy.APIError, err error) bool {
	status, code := 0, ""
	if api != nil {
		code = api.ErrorCode()
	}
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	_, timeout := retry.DefaultRetryableErrorCodes[code]
	if r, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok {
		status = r.HTTPStatusCode()
	}
	return throttled || timeout || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}
