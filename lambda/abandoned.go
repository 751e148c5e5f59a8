package lambda

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// tooManyAbandoned returns an error if more goroutines than Options.Abandoned were abandoned and have not returned. Nothing
// but the end of the process ends them. aws-lambda-go reports an error with ShouldExit to Lambda, and then ends the process,
// as after a panic: Lambda delivers the batch again, to a new one.
func (a *adapter) tooManyAbandoned(ctx context.Context) error {
	n := a.abandoned.Load()
	if most := a.opts.Abandoned; most < 0 || n <= int64(most) {
		return nil
	}
	text := fmt.Sprintf("lambda: %d handlers or calls of SQS ignore the end of their context, Options.Abandoned is %d: the process ends", n, a.opts.Abandoned)
	a.log.ErrorContext(ctx, text)
	return messages.InvokeResponse_Error{Type: "TooManyAbandoned", Message: text, ShouldExit: true}
}
