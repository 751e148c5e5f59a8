package doctor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// fake answers calls of an SDK client in AWS's place. It is middleware: it sees inputs, once the SDK has checked them, and returns
// outputs, both with the SDK's types. What it has no answer for goes on to a server, or fails if there is none.
type fake struct {
	server bool

	mu       sync.Mutex
	answers  map[string]func(any) (any, error)
	alters   map[string]func(any)
	refusals map[string]func(any) error // by input; nil: not refused
	calls    []string                   // operations, in their order
}

// answer sets the answer to the operation whose input and output these are.
func answer[I, O any](f *fake, do func(*I) (*O, error)) {
	f.set(strings.TrimSuffix(reflect.TypeFor[I]().Name(), "Input"), func(in any) (any, error) { return do(in.(*I)) })
}

func (f *fake) set(operation string, do func(any) (any, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answers == nil {
		f.answers = map[string]func(any) (any, error){}
	}
	f.answers[operation] = do
}

// alter changes each output of an operation.
func alter[O any](f *fake, do func(*O)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.alters == nil {
		f.alters = map[string]func(any){}
	}
	f.alters[strings.TrimSuffix(reflect.TypeFor[O]().Name(), "Output")] = func(out any) { do(out.(*O)) }
}

// refuse makes an operation fail where the function returns an error.
func (f *fake) refuse(operation string, with func(in any) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusals == nil {
		f.refusals = map[string]func(any) error{}
	}
	f.refusals[operation] = with
}

// deny refuses operations, as AWS does where no policy allows them.
func (f *fake) deny(operations ...string) {
	for _, o := range operations {
		f.refuse(o, func(any) error { return denial(o) })
	}
}

func denial(operation string) error {
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized to perform: " + operation}
}

// add is one of a client's APIOptions.
func (f *fake) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("fake", f.call), middleware.After)
}

func (f *fake) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput,
	middleware.Metadata, error) {
	operation := strings.TrimSuffix(reflect.TypeOf(in.Parameters).Elem().Name(), "Input")
	f.mu.Lock()
	f.calls = append(f.calls, operation)
	do, change, refused := f.answers[operation], f.alters[operation], f.refusals[operation]
	f.mu.Unlock()
	if refused != nil {
		if err := refused(in.Parameters); err != nil {
			return middleware.InitializeOutput{}, middleware.Metadata{}, err
		}
	}
	var out middleware.InitializeOutput
	var md middleware.Metadata
	var err error
	switch {
	case do != nil:
		out.Result, err = do(in.Parameters)
	case f.server:
		out, md, err = next.HandleInitialize(ctx, in)
	default:
		err = errors.New("the fake has no answer to " + operation)
	}
	if err == nil && change != nil {
		change(out.Result)
	}
	return out, md, err
}

// config is that of clients of a fake without a server.
func (f *fake) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: aws.AnonymousCredentials{},
		APIOptions: []func(*middleware.Stack) error{f.add},
	}
}

// notFound is AWS's answer for what does not exist.
func notFound(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ResourceNotFoundException", Message: fmt.Sprintf(format, args...)}
}
