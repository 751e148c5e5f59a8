package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// examination is one run of the checks. It asks for each fact once, and remembers that it could not be had.
type examination struct {
	Clients
	Deployment

	configured asked[*lambda.GetFunctionConfigurationOutput]
}

// callTimeout bounds one question, retries included: a service that does not answer is a Skip.
const callTimeout = 10 * time.Second

// asked is a fact that is asked for once.
type asked[T any] struct {
	done  bool
	value T
	err   error
}

func (a *asked[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	if !a.done {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		a.value, a.err = ask(ctx)
		a.done = true
	}
	return a.value, a.err
}

// errNoClient says that a deployment is looked at without the service.
var errNoClient = errors.New("no client")

// configuration is that of the function.
func (e *examination) configuration(ctx context.Context) (*lambda.GetFunctionConfigurationOutput, error) {
	return e.configured.get(ctx, func(ctx context.Context) (*lambda.GetFunctionConfigurationOutput, error) {
		if e.Lambda == nil {
			return nil, errNoClient
		}
		return e.Lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &e.Function})
	})
}

// unseen is the finding of a check that could not look.
func unseen(id string, err error) Finding {
	return Finding{ID: id, Verdict: Skip, Text: "could not look: " + err.Error()}
}
