// Command sqsonce is a function of package lambda without other options.
package main

import (
	"context"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/lambda"
)

func main() {
	f, err := lambda.NewHandler(func(context.Context, *sqsonce.Message) error { return nil })
	if err != nil {
		panic(err)
	}
	awslambda.Start(f)
}
