package dynamostore

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/internal/jsonread"
)

// DeserializeResponse implements [smithyhttp.ClientProtocol]. Nearly every shared call is answered by nothing but the
// table's name, once for each statement, and what all of them have cost. For that the SDK makes three allocations a
// statement; anything else it is left to read.
func (p protocol) DeserializeResponse(ctx context.Context, op *smithy.OperationSchema, types *smithy.TypeRegistry, resp *smithyhttp.Response, out smithy.Deserializable) error {
	slow := func() error { return p.ClientProtocol.DeserializeResponse(ctx, op, types, resp, out) }
	answer, ok := out.(*dynamodb.BatchExecuteStatementOutput)
	if !ok || resp.StatusCode != http.StatusOK {
		return slow()
	}
	return jsonread.Answer(resp, &p.room.answer, func(text []byte) bool { return readWritten(text, answer) }, slow)
}

// readWritten reads the answer to a shared call of which everything was written, and reports false for any other.
func readWritten(text []byte, out *dynamodb.BatchExecuteStatementOutput) bool {
	var responses []ddbtypes.BatchStatementResponse
	var capacity []ddbtypes.ConsumedCapacity
	r := writtenReader{Reader: jsonread.New(text)}
	r.Object(func(name []byte) {
		switch string(name) {
		case "Responses":
			r.FailIf(responses != nil)
			responses = make([]ddbtypes.BatchStatementResponse, 0, maxStatements)
			r.Array(func() {
				responses = append(responses, ddbtypes.BatchStatementResponse{TableName: r.tableOnly()})
			})
		case "ConsumedCapacity":
			r.FailIf(capacity != nil)
			capacity = make([]ddbtypes.ConsumedCapacity, 0, 1)
			r.Array(func() { capacity = append(capacity, r.units()) })
		default:
			r.Fail()
		}
	})
	if !r.End() {
		return false
	}
	out.Responses, out.ConsumedCapacity = responses, capacity
	return true
}

type writtenReader struct {
	jsonread.Reader
	name  []byte
	table *string // the last one, which is the next one too
}

func (r *writtenReader) tableOnly() (table *string) {
	r.Object(func(name []byte) {
		r.FailIf(string(name) != "TableName")
		table = r.tableName()
	})
	return table
}

func (r *writtenReader) units() (c ddbtypes.ConsumedCapacity) {
	r.Object(func(name []byte) {
		switch string(name) {
		case "TableName":
			c.TableName = r.tableName()
		case "CapacityUnits":
			n := r.Number()
			c.CapacityUnits = &n
		default:
			r.Fail()
		}
	})
	return c
}

func (r *writtenReader) tableName() *string {
	r.name = r.AppendString(r.name[:0])
	if r.table == nil || *r.table != string(r.name) {
		table := string(r.name)
		r.table = &table
	}
	return r.table
}
