package hosttest

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const ledger = "ledger"

func (w *fixture) createLedger() {
	if _, err := w.admin.ddb.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: aws.String(ledger), BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("event"), AttributeType: "S"}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("event"), KeyType: "HASH"}},
	}); err != nil {
		w.Fatal(err)
	}
}

// addOne is an effect that counts itself.
func addOne(event string) *ddbtypes.Update {
	return &ddbtypes.Update{
		TableName:                 aws.String(ledger),
		Key:                       map[string]ddbtypes.AttributeValue{"event": &ddbtypes.AttributeValueMemberS{Value: event}},
		UpdateExpression:          aws.String("ADD effects :one"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":one": &ddbtypes.AttributeValueMemberN{Value: "1"}},
	}
}

// effects returns the number of effects of each event in the ledger.
func (s *simulation) effects() map[string]int {
	out := map[string]int{}
	for _, raw := range s.ddb.Items(ledger) {
		var item struct {
			Event   struct{ S string }      `json:"event"`
			Effects struct{ N json.Number } `json:"effects"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			s.Errorf("ledger: %v", err)
		}
		n, err := item.Effects.N.Int64()
		if err != nil {
			s.Errorf("ledger: %v", err)
		}
		out[item.Event.S] = int(n)
	}
	return out
}
