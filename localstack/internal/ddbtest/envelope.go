package ddbtest

import (
	"encoding/json"
	"strings"
)

// Texts of 2026, of a PutItem, an UpdateItem and a DeleteItem that AWS refuses before it looks at the table. Recorded in October 2026 in
// two Regions: paritysuite/dynamodb-conformance, error-messages/putItem.test.ts, deleteItem.test.ts and valueLayers.test.ts, and
// captures/cross-region-latest.json. What needs the table has no envelope.
var envelopeCases = []testCase{
	{name: "envelope/refused before the table", run: func(x *exam) {
		const names = `,"ExpressionAttributeNames":{"#a":"a"}`
		const set = `,"UpdateExpression":"SET v = :v","ExpressionAttributeValues":`
		const capacity = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
		const returns = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
		const values = "One or more parameter values were invalid: "
		put, key := `"Item":{"id":{"S":"a"}}`, `"Key":{"id":{"S":"a"}}`
		item := func(value string) string { return `"Item":{"id":{"S":"a"},"v":` + value + `}` }
		for _, c := range []struct{ op, body, text string }{
			{"PutItem", put + names, "1 validation error detected: ExpressionAttributeNames can only be specified when using expressions"},
			{"DeleteItem", key + names, "1 validation error detected: ExpressionAttributeNames can only be specified when using expressions"},
			{"PutItem", put + `,"ReturnValues":"ALL_NEW"`, "1 validation error detected: ReturnValues can only be ALL_OLD or NONE"},
			{"PutItem", put + `,"ConditionExpression":"((attribute_exists(a)))"`, "1 validation error detected: Invalid ConditionExpression: The expression has redundant parentheses;"},
			{"UpdateItem", key + `,"UpdateExpression":""`, "1 validation error detected: Invalid UpdateExpression: The expression can not be empty;"},
			{"UpdateItem", key + set + `{":v":{"S":"v"},":w":{"S":"w"}}`, "1 validation error detected: Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}"},
			{"UpdateItem", key + set + `{":v":{"N":""}}`, "1 validation error detected: The parameter cannot be converted to a numeric value: "},
			{"DeleteItem", `"Key":{"id":{"NS":["2","1","2"]}}`, "1 validation error detected: " + values + "Input collection contains duplicates."},
			{"PutItem", item(`{"SS":["b","a","b"]}`), "1 validation error detected: " + values + `Input collection ["a", "b", "b"] contains duplicates.`},
			{"PutItem", item(`{"BS":[]}`), "1 validation error detected: " + values + "Binary sets should not be empty"},
			{"PutItem", item(`{"NULL":false}`), "1 validation error detected: " + values + "Null attribute value types must have the value of true"},
			{"PutItem", item(`{}`), "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
			{"GetItem", `"Key":{"id":{"N":"x"}}`, "The parameter cannot be converted to a numeric value: x"},
			{"DeleteItem", key + `,"ReturnConsumedCapacity":"hi","ReturnValues":"hi"`, "2 validation errors detected: " + capacity + "; " + returns},
			{"UpdateItem", key + `,"ReturnConsumedCapacity":"hi","ReturnValues":"hi"`, "1 validation error detected: " + returns},
		} {
			x.says(c.op, `{"TableName":"none",`+c.body+`}`, c.text)
		}
	}},
	{name: "envelope/refused by the table", keys: "id:S", run: func(x *exam) {
		table := `{"TableName":"` + x.table + `",`
		x.says("UpdateItem", table+`"Key":{"id":{"S":"a"}},"UpdateExpression":"SET id = :v","ExpressionAttributeValues":{":v":{"S":"b"}}}`,
			"One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key")
		x.says("PutItem", table+`"Item":{"id":{"N":"1"}}}`, "One or more parameter values were invalid: Type mismatch for key id expected: S actual: N")
		x.says("PutItem", table+`"Item":{"id":{"S":"a"},"v":{"S":"`+strings.Repeat("v", 410_000)+`"}}}`, "Item size has exceeded the maximum allowed size")
	}},
}

// says expects a ValidationException with a text.
func (x *exam) says(op, body, text string) {
	r := x.send(op, body)
	equal(x, "code of "+op, r.code(), invalid)
	var e struct{ Message string }
	x.ok(json.Unmarshal(r.body, &e))
	equal(x, op, e.Message, text)
}
