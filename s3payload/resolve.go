package s3payload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// The reasons why a pointer is not resolved, beside [ErrPointer], [sqsonce.ErrUnavailable] and [sqsonce.ErrMisconfigured].
// None is a Reject: somebody can mend each of them while the message is still in the queue.
var (
	// ErrBucket says that a pointer names a bucket that is not in the list of [Resolve].
	ErrBucket = errors.New("s3payload: the bucket is not one of those that Resolve may read")
	// ErrNoObject says that S3 has no such object. S3 says so only to a role with s3:ListBucket, to others that access is
	// denied.
	ErrNoObject = errors.New("s3payload: no such object")
	// ErrTooLarge says that an object has more bytes than ResolveOptions.MaxBytes.
	ErrTooLarge = errors.New("s3payload: the object is too large")
	// ErrSize says that S3 returned the whole object, and that it has fewer bytes than the message's attribute says: the
	// producer wrote another size, or somebody replaced the object.
	ErrSize = errors.New("s3payload: the object has fewer bytes than the message says")
)

// ResolveOptions configure [Resolve].
type ResolveOptions struct {
	// MaxBytes is the size of the largest object that is read. Each handler that runs may hold as much. Default: 16 MiB. At
	// most 2 GiB - 1.
	MaxBytes int64
	// Timeout bounds the read of one object, with the client's own retries. Default: 1 min.
	Timeout time.Duration
}

// Resolve returns a handler that calls h with the content of the S3 object that the body points to. A message without a
// pointer goes to h as it is, without a request. h gets a copy of the message whose Body is the object's content, without the
// pointer's attribute; the message itself does not change, so that what the host sends to a dead-letter queue is the pointer.
//
// buckets are the buckets that may be read: a message must not choose what its consumer reads. There must be at least one. A
// pointer is recognised by its body; its attribute may be missing.
//
// The returned handler's error is:
//
//   - h's own, unchanged.
//   - a [*sqsonce.RejectError] around [ErrPointer]: another delivery would change nothing.
//   - matching [ErrBucket], [ErrNoObject], [ErrTooLarge] or [ErrSize]: an ordinary failure of the message.
//   - matching [sqsonce.ErrUnavailable]: S3 did not answer within Timeout, throttles or fails, the request could not be sent, for
//     example because credentials could not be fetched, a proxy answered in S3's place, or the answer broke off, with
//     fewer bytes than its Content-Length. Without a Content-Length that is an answer with fewer bytes than the message's
//     attribute says. The error also matches [sqsonce.ErrMisconfigured] where the bucket, which is one of the list, does not
//     exist or is in another Region, or the credentials are refused.
//   - the cause of the handler's context, wrapped, if that ended first.
//   - any other that S3 answers, among them denied access: an ordinary failure of the message. The role may lack
//     s3:ListBucket, and the object be missing.
//
// h was called in the first case only. Resolve makes no request. Its error joins one [*sqsonce.OptionError] for each argument
// or option that cannot be used.
func Resolve(h sqsonce.Handler, client Getter, buckets []string, optFns ...func(*ResolveOptions)) (sqsonce.Handler, error) {
	var o ResolveOptions
	for _, fn := range optFns {
		fn(&o)
	}
	o.MaxBytes, o.Timeout = cmp.Or(o.MaxBytes, defaultMaxBytes), cmp.Or(o.Timeout, defaultTimeout)
	var errs []error
	add := func(bad bool, field, format string, args ...any) {
		if bad {
			errs = append(errs, badField(field, format, args...))
		}
	}
	add(h == nil, "handler", "is nil")
	add(host.IsNil(client), "client", "is nil")
	add(len(buckets) == 0 || slices.Contains(buckets, ""), "buckets", "is %q, must name one bucket or more", buckets)
	add(badMaxBytes(o.MaxBytes), "ResolveOptions.MaxBytes", "is %d, must be 1 to %d", o.MaxBytes, mostBytes)
	add(o.Timeout < 0, "ResolveOptions.Timeout", "is %v, must be positive", o.Timeout)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	r := &resolver{next: h, client: client, buckets: slices.Clone(buckets), maxBytes: o.MaxBytes, calls: calls{timeout: o.Timeout}}
	return r.handle, nil
}

func badMaxBytes(n int64) bool { return n < 0 || n > mostBytes }

func badField(field, format string, args ...any) error {
	return &sqsonce.OptionError{Package: "s3payload", Field: field, Problem: fmt.Sprintf(format, args...)}
}

type resolver struct {
	next     sqsonce.Handler
	client   Getter
	buckets  []string
	maxBytes int64
	calls    calls
}

func (r *resolver) handle(ctx context.Context, m *sqsonce.Message) error {
	if !namesPointer(m.Body) {
		if name := sizeAttributeOf(m.Attributes); name != "" {
			return sqsonce.Reject(fmt.Errorf("%w: it has the attribute %s, and its body names none", ErrPointer, name))
		}
		return r.next(ctx, m)
	}
	p, err := parsePointer(m.Body)
	if err != nil {
		return sqsonce.Reject(err)
	}
	if !slices.Contains(r.buckets, p.Bucket) {
		return fmt.Errorf("%w: %v", ErrBucket, p)
	}
	var content string
	err = r.calls.do(ctx, func(ctx context.Context) (err error) {
		content, err = r.read(ctx, p, sizeOf(m.Attributes))
		return err
	})
	if err != nil {
		return explain(ctx, p, err)
	}
	resolved := *m
	resolved.Body = content
	resolved.Attributes = maps.Clone(m.Attributes)
	delete(resolved.Attributes, sizeAttribute)
	delete(resolved.Attributes, legacySizeAttribute)
	return r.next(ctx, &resolved)
}

// sizeAttributeOf returns the name of the attribute that marks a pointer, or "".
func sizeAttributeOf(attrs map[string]sqsonce.Attribute) string {
	for _, name := range []string{sizeAttribute, legacySizeAttribute} {
		if _, ok := attrs[name]; ok {
			return name
		}
	}
	return ""
}

// sizeOf returns the size that the pointer's attribute says, or 0. Clients count bytes, or characters, which are not more.
func sizeOf(attrs map[string]sqsonce.Attribute) int64 {
	n, err := strconv.ParseInt(attrs[sizeAttributeOf(attrs)].String, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// read returns the content of the whole object, which has at least size bytes, or an error.
func (r *resolver) read(ctx context.Context, p pointer, size int64) (string, error) {
	out, err := r.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &p.Bucket, Key: &p.Key}, withEvidence)
	if err != nil {
		return "", err
	}
	if out == nil || out.Body == nil {
		return "", errNoAnswer
	}
	defer func() { _ = out.Body.Close() }() // only read from
	var content strings.Builder
	if out.ContentLength != nil {
		if *out.ContentLength > r.maxBytes {
			return "", fmt.Errorf("%w: it has %d bytes, ResolveOptions.MaxBytes is %d", ErrTooLarge, *out.ContentLength, r.maxBytes)
		}
		content.Grow(int(max(*out.ContentLength, 0)))
	}
	n, err := io.Copy(&content, io.LimitReader(out.Body, r.maxBytes+1))
	switch {
	case err != nil:
		return "", err
	case n > r.maxBytes:
		return "", fmt.Errorf("%w: it has more than %d bytes, ResolveOptions.MaxBytes", ErrTooLarge, r.maxBytes)
	case out.ContentLength != nil && n < *out.ContentLength:
		return "", io.ErrUnexpectedEOF
	case n < size && out.ContentLength != nil && *out.ContentLength >= 0:
		return "", fmt.Errorf("%w: it has %d bytes, the attribute says %d", ErrSize, n, size)
	case n < size: // it may have broken off
		return "", io.ErrUnexpectedEOF
	}
	return content.String(), nil
}
