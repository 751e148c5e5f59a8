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

// appendTo is an effect: it appends the event to the ledger's list of the lane.
func appendTo(lane, event string) *ddbtypes.Update {
	return &ddbtypes.Update{
		TableName:        aws.String(ledger),
		Key:              map[string]ddbtypes.AttributeValue{"event": &ddbtypes.AttributeValueMemberS{Value: lane}},
		UpdateExpression: aws.String("SET effects = list_append(if_not_exists(effects, :none), :event)"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":none":  &ddbtypes.AttributeValueMemberL{},
			":event": &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{&ddbtypes.AttributeValueMemberS{Value: event}}},
		},
	}
}

// ledgerOrder returns the events of each lane in the order of their effects.
func (f *fleet) ledgerOrder() map[string][]string {
	out := map[string][]string{}
	for _, raw := range f.ddb.Items(ledger) {
		var item struct {
			Event   struct{ S string }               `json:"event"`
			Effects struct{ L []struct{ S string } } `json:"effects"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			f.Errorf("ledger: %v", err)
		}
		for _, e := range item.Effects.L {
			out[item.Event.S] = append(out[item.Event.S], e.S)
		}
	}
	return out
}

func (f *fleet) fleetEffects() map[string]int {
	out := map[string]int{}
	for _, events := range f.ledgerOrder() {
		for _, e := range events {
			out[e]++
		}
	}
	return out
}
