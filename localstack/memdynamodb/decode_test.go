package memdynamodb

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Requests as the SDKs write them, by the kind that reads them.
var (
	itemRequests = []string{
		`{"ConditionExpression":"attribute_not_exists(#a) OR #a < :b","ExpressionAttributeNames":{"#a":"n"},"ExpressionAttributeValues":{":b":{"N":"1.50"}},"Item":{"id":{"S":"a\"\\\/\b\f\n\r\t"},"m":{"M":{"l":{"L":[{"BOOL":true},{"NULL":true}]}}},"s":{"NS":["2","1"]},"b":{"B":"aGk="}},"ReturnConsumedCapacity":"TOTAL","ReturnValues":"ALL_OLD","TableName":"orders"}`,
		`{"Key":{"id":{"S":"é"}},"ReturnValuesOnConditionCheckFailure":"ALL_OLD","TableName":"orders","UpdateExpression":"SET a = b"}`,
		` { "TableName" : "orders" , "Key" : { } , "ExpressionAttributeNames" : { } } `, `{}`,
	}
	readRequests = []string{
		`{"ConsistentRead":true,"ExpressionAttributeNames":{"#a":"n","#b":"m"},"Key":{"id":{"S":"a"}},"ProjectionExpression":"#a,#b","ReturnConsumedCapacity":"TOTAL","TableName":"orders"}`,
	}
	statementRequests = []string{
		`{"ConsistentRead":false,"Parameters":[{"S":"a"}],"ReturnConsumedCapacity":"NONE","ReturnValuesOnConditionCheckFailure":"ALL_OLD","Statement":"DELETE FROM \"orders\" WHERE id=?"}`,
		`{"Parameters":[],"Statement":""}`,
	}
	batchRequests = []string{
		`{"ReturnConsumedCapacity":"TOTAL","Statements":[{"Parameters":[{"S":"a"},{"N":"1"}],"Statement":"A"},{"Parameters":[{"S":"a"},{"N":"1"}],"Statement":"A"},{"Parameters":[{"S":"a"},{"N":"12"},{"L":[]}],"Statement":"AB"},{"Statement":"A"}]}`,
		`{"Statements":[{"Parameters":[ {"S":"a"}],"Statement": "A"},{"Parameters":[{"S":"a"} ],"Statement":"A" },{"Parameters":[{"S":"a","S":"a"}]}]}`,
	}
	// What no SDK would write.
	oddRequests = []string{
		`{"TableName":"a","TableName":"b"}`, `{"TableName":"","TableName":"b"}`, `{"tablename":"a"}`, `{"TableName":null}`, `{"TableName":7}`, `{"TableName":"a"}x`, "{\"TableName\":\"a\"}\x00", `{"TableName":"a",}`, `[]`, `null`, ``, `{`,
		`{"TableName":"\ud800"}`, "{\"TableName\":\"\xff\"}", "{\"TableName\":\"\n\"}", `{"Other":[{"a":1.5e3}],"TableName":"a"}`, `{"Limit":1}`,
		`{"Key":{"id":{"S":"a"}},"Key":{"id":{"S":"b"}}}`, `{"Key":null}`, `{"Key":{"id":null}}`, `{"Key":{"id":{"N":"x"}}}`, `{"Item":{"id":{"S":"a"},"id":{"S":"b"}}}`,
		`{"ExpressionAttributeNames":{"#a":"b"},"ExpressionAttributeNames":{"#b":"c"}}`, `{"ExpressionAttributeNames":{"#a":"b","#a":"c"}}`, `{"ExpressionAttributeNames":{"#a":null}}`,
		`{"ConditionExpression":"a","ConditionExpression":null}`, `{"ConditionExpression":"a","ConditionExpression":"b"}`, `{"ConsistentRead":true,"ConsistentRead":false}`, `{"ConsistentRead":"true"}`,
		`{"Parameters":[{"S":"a"}],"Parameters":null}`, `{"Parameters":[{"S":"a"}],"Parameters":[]}`, `{"Parameters":[null]}`, `{"Parameters":[{"N":"x"}]}`, `{"Parameters":[1,2]}`, `{"Statement":"a","Statement":"b"}`,
		`{"Statements":[{"Statement":"a"}],"Statements":[]}`, `{"Statements":[{"Parameters":[{"S":"a"}],"Statement":"a","ConsistentRead":true}],"Statements":[{}]}`, `{"Statements":[{"Parameters":[{"S":"a"}],"Statement":"a"}],"Statements":[{"Parameters":null}]}`, `{"Statements":[{"Parameters":[{"S":"a"}],"Parameters":[{"S":"b"}],"Parameters":[{"S":"a"}]}]}`, `{"Statements":[null]}`, `{"Statements":null}`, `{"Statements":{}}`, `{"Statements":[{"Parameters":[{"S":"a"}],"Statement":"A"},{"Parameters":[{"S":"a"}x],"Statement":"A"}]}`,
	}
)

// The SDKs' own requests are read quickly: to encoding/json they would be as right, and several times as long.
func TestQuickRequests(t *testing.T) {
	t.Parallel()
	quickly(t, itemRequests, func() quick { return new(writeInput) })
	quickly(t, readRequests, func() quick { return new(getItemInput) })
	quickly(t, statementRequests, func() quick { return new(executeStatementInput) })
	quickly(t, batchRequests[:1], func() quick { return new(batchStatementInput) })
}

func quickly(t *testing.T, bodies []string, in func() quick) {
	t.Helper()
	for _, body := range bodies {
		if err := decodeQuick([]byte(body), in()); err != nil {
			t.Errorf("%s is not read quickly: %v", body, err)
		}
	}
}

// FuzzDecodeRequests: a request is what encoding/json says it is, quickly read or not.
func FuzzDecodeRequests(f *testing.F) {
	for _, bodies := range [][]string{itemRequests, readRequests, statementRequests, batchRequests, oddRequests} {
		for _, s := range bodies {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sameAsJSON(t, body, func(*writeInput) []*statementInput { return nil })
		sameAsJSON(t, body, func(*getItemInput) []*statementInput { return nil })
		sameAsJSON(t, body, func(in *executeStatementInput) []*statementInput { return []*statementInput{&in.statementInput} })
		sameAsJSON(t, body, func(in *batchStatementInput) (all []*statementInput) {
			for i := range in.Statements {
				all = append(all, &in.Statements[i])
			}
			return all
		})
	})
}

// sameAsJSON compares an input with what encoding/json makes of it. Parameters are compared by what they are to the
// statement; the two kinds keep them in different forms.
func sameAsJSON[In any](t *testing.T, body []byte, statements func(*In) []*statementInput) {
	t.Helper()
	got, err := decode[In](body)
	want := new(In)
	wantErr := json.Unmarshal(body, want)
	if text(err) != text(wantErr) {
		t.Fatalf("%T %q: got error %v, want %v", got, body, err, wantErr)
	}
	if err != nil {
		return
	}
	var params [2][][]any
	for i, in := range []*In{got, want} {
		for _, st := range statements(in) {
			values, err := st.parameters()
			st.Parameters, st.values = nil, nil
			list := []any{text(err)}
			for _, v := range values {
				list = append(list, v)
			}
			params[i] = append(params[i], list)
		}
	}
	if d := cmp.Diff(params[1], params[0]); d != "" {
		t.Errorf("%T %q: parameters (-want +got):\n%s", got, body, d)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%T %q: got %+v, want %+v", got, body, got, want)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
