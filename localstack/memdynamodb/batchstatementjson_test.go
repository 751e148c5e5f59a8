package memdynamodb

import (
	"encoding/json"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// What an answer to a batch of statements writes itself is what encoding/json would write.
func TestBatchStatementJSON(t *testing.T) {
	t.Parallel()
	item := attr.Map{{Name: "id", Value: attr.String("<a>")}}
	units := func(n float64) []*consumedCapacity {
		return []*consumedCapacity{{TableName: "orders", capacity: capacity{CapacityUnits: n}}}
	}
	failed := func(code, message string) statementResponse {
		return statementResponse{Error: &statementError{Code: code, Message: message}, TableName: "orders"}
	}
	written := statementResponse{TableName: "orders"}
	for name, c := range map[string]struct {
		out  batchStatementOutput
		left bool // to encoding/json
	}{
		"none":               {out: batchStatementOutput{Responses: []statementResponse{}}},
		"empty":              {out: batchStatementOutput{Responses: []statementResponse{{}, {}}}},
		"written":            {out: batchStatementOutput{Responses: []statementResponse{written, written, written}, ConsumedCapacity: units(3)}},
		"half a unit":        {out: batchStatementOutput{Responses: []statementResponse{written}, ConsumedCapacity: units(0.5)}},
		"many units":         {out: batchStatementOutput{Responses: []statementResponse{written}, ConsumedCapacity: units(12345678.5)}},
		"no units":           {out: batchStatementOutput{Responses: []statementResponse{written}, ConsumedCapacity: units(0)}},
		"two tables":         {out: batchStatementOutput{Responses: []statementResponse{written, {TableName: "more"}}, ConsumedCapacity: append(units(1), units(2)...)}},
		"errors":             {out: batchStatementOutput{Responses: []statementResponse{failed("DuplicateItem", "Duplicate primary key exists in table"), written, failed("A", "")}}},
		"error before table": {out: batchStatementOutput{Responses: []statementResponse{{Error: &statementError{Code: "ValidationError", Message: "no table yet"}}}}},
		"escapes":            {out: batchStatementOutput{Responses: []statementResponse{failed("\"", "\\ \x00\x1f\x7f\n\t\"<&>'/"), failed("<", "é \u2028 \u2029 \U0001F600")}}},
		"no UTF-8":           {out: batchStatementOutput{Responses: []statementResponse{failed("\xff", "a\xc3(\xed\xa0\x80")}}},
		"odd table":          {out: batchStatementOutput{Responses: []statementResponse{{TableName: "<é\xff>"}}, ConsumedCapacity: []*consumedCapacity{{TableName: "<é\xff>"}}}},
		"item":               {out: batchStatementOutput{Responses: []statementResponse{{TableName: "orders", Item: &item}}}, left: true},
		"item of an error":   {out: batchStatementOutput{Responses: []statementResponse{{Error: &statementError{Code: "A", Item: item}}}}, left: true},
		"kinds of units":     {out: batchStatementOutput{Responses: []statementResponse{written}, ConsumedCapacity: []*consumedCapacity{{capacity: capacity{CapacityUnits: 1, ReadCapacityUnits: 1}}}}, left: true},
		"units of parts":     {out: batchStatementOutput{Responses: []statementResponse{written}, ConsumedCapacity: []*consumedCapacity{{Table: &capacity{CapacityUnits: 1}}}}, left: true},
		"units of indexes":   {out: batchStatementOutput{Responses: []statementResponse{written}, ConsumedCapacity: []*consumedCapacity{{GlobalSecondaryIndexes: map[string]capacity{"x": {CapacityUnits: 1}}}}}, left: true},
		"units beyond sense": {out: batchStatementOutput{Responses: []statementResponse{written}, ConsumedCapacity: units(1e21)}, left: true},
	} {
		got, ok := c.out.AppendJSON([]byte("before"))
		if ok == c.left {
			t.Errorf("%s: left to encoding/json is %t, want %t", name, !ok, c.left)
		}
		want, err := json.Marshal(c.out)
		if err != nil {
			t.Fatal(err)
		}
		if ok && string(got) != "before"+string(want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
