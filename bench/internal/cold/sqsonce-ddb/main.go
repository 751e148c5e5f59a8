// Command sqsonce-ddb is a function of package lambda with package dedup and its records in DynamoDB.
package main

import (
	"context"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/cold"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/lambda"
)

func main() {
	f, err := function()
	if err != nil {
		panic(err)
	}
	awslambda.Start(f)
}

func function() (any, error) {
	store, err := dynamostore.New(cold.Client(), "records")
	if err != nil {
		return nil, err
	}
	once, err := dedup.New(store, "bench")
	if err != nil {
		return nil, err
	}
	return lambda.NewHandler(once.Handler(func(context.Context, *sqsonce.Message) error { return nil }))
}
