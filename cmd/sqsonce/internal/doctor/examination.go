package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
)

// examination is one run of the checks. It asks for each fact once, and remembers that it could not be had. Its checks run one after
// the other.
type examination struct {
	Clients // bounded
	Deployment

	source, dead       asked[*queue]
	mappings, deadRead asked[[]lambdatypes.EventSourceMappingConfiguration]
	configured         asked[*lambda.GetFunctionConfigurationOutput]
	table              asked[*ddbtypes.TableDescription]
	caller             asked[*sts.GetCallerIdentityOutput]
}

// questionTimeout bounds a question of several calls: the pages of a list.
const questionTimeout = 3 * callTimeout

// asked is a fact that is asked for once.
type asked[T any] struct {
	done  bool
	value T
	err   error
}

func (a *asked[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	if !a.done {
		ctx, cancel := context.WithTimeout(ctx, questionTimeout)
		defer cancel()
		a.value, a.err = ask(ctx)
		a.done = true
	}
	return a.value, a.err
}

// errNoClient says that a deployment is looked at without the service.
var errNoClient = errors.New("no client")

// identity is who has the credentials.
func (e *examination) identity(ctx context.Context) (*sts.GetCallerIdentityOutput, error) {
	return e.caller.get(ctx, func(ctx context.Context) (*sts.GetCallerIdentityOutput, error) {
		if e.STS == nil {
			return nil, errNoClient
		}
		return e.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	})
}

// foreign returns why something of an account cannot be seen with these credentials: it is another one than theirs. Where theirs is
// not known it is nil.
func (e *examination) foreign(ctx context.Context, what, account string) error {
	own, err := e.identity(ctx)
	if err != nil || aws.ToString(own.Account) == "" || *own.Account == account {
		return nil
	}
	return fmt.Errorf("%s of account %s cannot be seen with credentials of account %s", what, account, *own.Account)
}

// configuration is that of the function: of the version that the mapping invokes, where that can be seen.
func (e *examination) configuration(ctx context.Context) (*lambda.GetFunctionConfigurationOutput, error) {
	return e.configured.get(ctx, func(ctx context.Context) (*lambda.GetFunctionConfigurationOutput, error) {
		if e.Lambda == nil {
			return nil, errNoClient
		}
		name := &e.Function
		if m, err := e.mapping(ctx); err == nil && m != nil {
			name = m.FunctionArn
		}
		return e.Lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: name})
	})
}

// unseen is the finding of a check that could not look.
func unseen(id string, err error) Finding {
	return Finding{ID: id, Verdict: Skip, Text: reason(err), Denied: awserr.Denied(err)}
}

// reason is why a question has no answer, with the action that was asked for.
func reason(err error) string {
	if away, ok := errors.AsType[*awayError](err); ok && errors.Is(err, errTimeout) {
		return away.Error()
	}
	text := awserr.Reason(err)
	if awserr.Action(err) == "" {
		text = "could not look: " + text
	}
	return text
}
