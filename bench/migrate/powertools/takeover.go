// Package powertools moves a function on Powertools for AWS Lambda to sqsonce: docs/migrate.md shows its steps.
package powertools

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/migrate"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
)

// Order is the body of a message.
type Order = migrate.Order

// NewHandler returns a handler that has one record for an event with Powertools.
func NewHandler(client *dynamodb.Client, charge func(context.Context, Order) error) (sqsonce.Handler, error) {
	store, err := dynamostore.New(client, "idempotency") // its table
	if err != nil {
		return nil, err
	}
	once, err := dedup.New(store, "billing", func(o *dedup.Options) { // its keyPrefix
		o.Key = Key
	})
	if err != nil {
		return nil, err
	}
	return once.Handler(sqsonce.JSON(charge)), nil
}

// Key returns the key of Powertools for TypeScript where eventKeyJmesPath is "id".
func Key(m *sqsonce.Message) (string, error) {
	o, err := sqsonce.Decode[Order](m)
	if err != nil {
		return "", err
	}
	if o.ID == "" { // all such orders would have one key
		return "", sqsonce.ErrNoEventID
	}
	id, err := json.Marshal(o.ID)
	if err != nil {
		return "", err
	}
	return dynamostore.PowertoolsKey(id)
}

// PythonKey returns the key of Powertools for Python where event_key_jmespath is "id". The IDs are of ASCII characters without
// quotes, backslashes and control characters, which Python's JSON escapes.
func PythonKey(m *sqsonce.Message) (string, error) {
	o, err := sqsonce.Decode[Order](m)
	if err != nil {
		return "", err
	}
	if o.ID == "" { // all such orders would have one key
		return "", sqsonce.ErrNoEventID
	}
	sum := md5.Sum([]byte(`"` + o.ID + `"`))
	return hex.EncodeToString(sum[:]), nil
}
