package awslambda

import (
	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/lambda"
)

// Start takes the place of FunctionOnce and of aws-lambda-go's Start.
func Start(handler sqsonce.Handler) {
	lambda.Start(handler) // github.com/sqsonce/sqsonce/lambda; never returns
}
