// Package migrate has what the programs of docs/migrate.md have in common.
package migrate

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
)

// Order is the body of a message.
type Order struct {
	ID    string `json:"id"` // of the event: ord-42/v3
	Cents int    `json:"cents"`
}

// NewHandler returns a handler that runs charge once for each event. A process makes it once: a function not in each invocation.
func NewHandler(client *dynamodb.Client, charge func(context.Context, Order) error) (sqsonce.Handler, error) {
	store, err := dynamostore.New(client, "dedup") // table
	if err != nil {
		return nil, err
	}
	once, err := dedup.New(store, "billing") // consumer: part of every key
	if err != nil {
		return nil, err
	}
	return once.Handler(sqsonce.JSON(charge)), nil
}
