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
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// The reasons why a pointer is not resolved, in addition to errPointer, [sqsonce.ErrUnavailable] and
// [sqsonce.ErrMisconfigured]. They aren't a Reject, because you can fix each of them while the message is still in the queue.
var (
	// errBucket says that a pointer names a bucket that is not in the list of [Resolve].
	errBucket = errors.New("s3payload: the bucket is not one of those that Resolve may read")
	// ErrNoObject says that S3 doesn't have the object. S3 says so only to a role with s3:ListBucket. To other roles it says
	// that access is denied.
	ErrNoObject = errors.New("s3payload: no such object")
	// errTooLarge says that an object has more bytes than ResolveOptions.MaxBytes.
	errTooLarge = errors.New("s3payload: the object is too large")
	// errSize says that S3 returned the whole object, and that it has fewer bytes than the message's attribute says. Either the
	// producer wrote another size, or the object was replaced.
	errSize = errors.New("s3payload: the object has fewer bytes than the message says")
	// errTooSlow says that S3 returned an object, and that reading it took longer than ResolveOptions.Timeout, for the second time
	// in this process.
	errTooSlow = errors.New("s3payload: the object took longer than ResolveOptions.Timeout, twice")
)

// ResolveOptions configure [Resolve].
type ResolveOptions struct {
	// MaxBytes is the size of the largest object that is read. Each handler that runs may hold as much.
	// Default: 16 MiB. Limits: at most 2 GiB - 1.
	MaxBytes int64
	// Timeout bounds the read of one object, with the client's own retries.
	// Default: 1 min.
	Timeout time.Duration
}

// Resolve returns a handler that calls h with the content of the S3 object that the body points to. A message without a pointer
// goes to h as it is, without a request. h gets a copy of the message whose Body is the object's content, without the pointer's
// attribute. The message itself doesn't change, so the host sends the pointer to a dead-letter queue.
//
// buckets are the buckets that may be read, because a message must not choose what its consumer reads. Give at least one.
// Resolve recognises a pointer by its body. Its attribute may be missing.
//
// The returned handler's error is:
//
//   - h's own, unchanged.
//   - a [sqsonce.Reject] if the pointer can't be read, because another delivery would have the same pointer.
//   - matching [ErrNoObject], or of an object that is too large, too slow, shorter than the message says, or in another bucket: an
//     ordinary failure of the message.
//   - matching [sqsonce.ErrUnavailable]: S3 did not answer within Timeout, throttles or fails, or a proxy answered in its
//     place. It also means that the request could not be sent, for example because credentials could not be fetched, or that
//     the answer broke off, with fewer bytes than its own Content-Length. The first time that Timeout ends while an object is
//     read is one of these. The error also matches [sqsonce.ErrMisconfigured] if the bucket, which is one of the list, does not
//     exist or is in another Region, or the credentials are refused.
//   - the cause of the handler's context, wrapped, if that ended first.
//   - any other that S3 answers, among them denied access and content that does not match its checksum: an ordinary failure of
//     the message. The role may lack s3:ListBucket, and the object be missing.
//
// Only the first error means that h was called. Resolve makes no request. Its error joins one [*sqsonce.OptionError] for each
// argument or option that can't be used.
func Resolve(h sqsonce.Handler, client Getter, buckets []string, optFns ...func(*ResolveOptions)) (sqsonce.Handler, error) {
	var o ResolveOptions
	for _, fn := range optFns {
		fn(&o)
	}
	o.MaxBytes, o.Timeout = cmp.Or(o.MaxBytes, defaultMaxBytes), cmp.Or(o.Timeout, defaultTimeout)
	p := host.Problems{Package: "s3payload"}
	add := p.Add
	add(h == nil, "handler", "is nil")
	add(host.IsNil(client), "client", "is nil")
	add(len(buckets) == 0 || slices.Contains(buckets, ""), "buckets", "is %q, must name one bucket or more", buckets)
	add(badMaxBytes(o.MaxBytes), "ResolveOptions.MaxBytes", "is %d, must be 1 to %d", o.MaxBytes, mostBytes)
	add(o.Timeout < 0, "ResolveOptions.Timeout", "is %v, must be positive", o.Timeout)
	if err := p.Err(); err != nil {
		return nil, err
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
	slow     slow
}

// slow knows the objects that S3 returned and that took longer than the timeout. Such an object may always do so: the second time
// accuses the object, or its message stops a worker for ever.
type slow struct {
	mu      sync.Mutex
	objects map[pointer]bool
}

// mostSlow bounds the objects that a resolver remembers. Above it the resolver forgets all.
const mostSlow = 1000

// again notes that an object was slow, and reports whether it was before.
func (s *slow) again(p pointer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[p] {
		return true
	}
	if s.objects == nil || len(s.objects) == mostSlow {
		s.objects = map[pointer]bool{}
	}
	s.objects[p] = true
	return false
}

func (s *slow) forget(p pointer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, p)
}

func (r *resolver) handle(ctx context.Context, m *sqsonce.Message) error {
	if !namesPointer(m.Body) {
		if name := sizeAttributeOf(m.Attributes); name != "" {
			return sqsonce.Reject(fmt.Errorf("%w: it has the attribute %s, and its body names none", errPointer, name))
		}
		return r.next(ctx, m)
	}
	p, err := parsePointer(m.Body)
	if err != nil {
		return sqsonce.Reject(err)
	}
	if !slices.Contains(r.buckets, p.Bucket) {
		return fmt.Errorf("%w: %v", errBucket, p)
	}
	var content string
	var slow bool
	err = r.calls.do(ctx, func(ctx context.Context) (err error) {
		content, err = r.read(ctx, p, sizeOf(m.Attributes))
		slow = errors.Is(err, errSlow)
		return err
	})
	if err != nil {
		if slow && ctx.Err() == nil && r.slow.again(p) {
			err = fmt.Errorf("%w: %v", errTooSlow, err)
		}
		return explain(ctx, p, err)
	}
	r.slow.forget(p)
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
	length := int64(-1)                     // not known
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	if length > r.maxBytes {
		return "", fmt.Errorf("%w: it has %d bytes, ResolveOptions.MaxBytes is %d", errTooLarge, length, r.maxBytes)
	}
	var content strings.Builder
	content.Grow(int(max(length, 0)))
	n, err := io.Copy(&content, io.LimitReader(out.Body, r.maxBytes+1))
	switch {
	case ctx.Err() != nil && err != nil:
		return "", fmt.Errorf("%w after %d bytes: %w", errSlow, n, err)
	case n > r.maxBytes:
		return "", fmt.Errorf("%w: it has more than %d bytes, ResolveOptions.MaxBytes", errTooLarge, r.maxBytes)
	case n < length: // S3's own word: neither the message's sender nor the object causes that
		return "", cmp.Or(err, io.ErrUnexpectedEOF)
	case err != nil: // such as a checksum that differs
		return "", &contentError{err}
	case n < size:
		return "", fmt.Errorf("%w: it has %d bytes, the attribute says %d", errSize, n, size)
	}
	return content.String(), nil
}

// contentError is the failure to read an object that did not break off by S3's Content-Length.
type contentError struct{ error }

func (e *contentError) Unwrap() error { return e.error }
