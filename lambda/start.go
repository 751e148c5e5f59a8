package lambda

import (
	"fmt"
	"os"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/sqsonce/sqsonce"
)

// Start serves the function's invocations with h and never returns: call it last in main. A bad argument or option ends
// the process with status 1 before the first invocation, after each was printed to standard error.
func Start(h sqsonce.Handler, optFns ...func(*Options)) {
	f, err := Wrap(h, optFns...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	awslambda.Start(f)
}
