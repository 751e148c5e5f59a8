package ddbtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// reply is a response before the SDK has read it.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request that the SDK would not send, with the SDK's signature.
func (x *exam) send(op, body string, change ...func(*http.Request)) reply {
	o := x.client().Options()
	r := suite.Get(http.NewRequestWithContext(x.ctx, http.MethodPost, *o.BaseEndpoint+"/", strings.NewReader(body)))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	credentials := suite.Get(o.Credentials.Retrieve(x.ctx))
	sum := sha256.Sum256([]byte(body))
	x.ok(v4.NewSigner().SignHTTP(x.ctx, credentials, r, hex.EncodeToString(sum[:]), "dynamodb", o.Region, time.Now()))
	for _, f := range change {
		f(r)
	}
	resp := suite.Get(o.HTTPClient.Do(r))
	defer resp.Body.Close() // only read
	raw := suite.Get(io.ReadAll(resp.Body))
	return reply{resp.StatusCode, resp.Header, raw}
}

// code returns the error's code, without its namespace.
func (r reply) code() string {
	var e struct {
		Type string `json:"__type"`
	}
	if json.Unmarshal(r.body, &e) != nil {
		return fmt.Sprintf("%d with %q", r.status, r.body)
	}
	_, code, _ := strings.Cut(e.Type, "#")
	return code
}

const syntax = "SerializationException"

func wireCases() []testCase {
	all := []testCase{
		{name: "wire/an unknown operation", run: func(x *exam) {
			r := x.send("DoesNotExist", "{}")
			equal(x, "code", r.code(), "UnknownOperationException")
			equal(x, "status", r.status, http.StatusBadRequest)
		}},
		{name: "wire/unsigned", run: func(x *exam) {
			r := x.send("ListTables", "{}", func(r *http.Request) { r.Header.Del("Authorization") })
			equal(x, "code", r.code(), "MissingAuthenticationTokenException")
		}},
		{name: "wire/an error's shape", run: func(x *exam) {
			r := x.send("DescribeTable", `{"TableName":"`+x.newName()+`"}`)
			equal(x, "status", r.status, http.StatusBadRequest)
			equal(x, "content type", r.header.Get("Content-Type"), "application/x-amz-json-1.0")
			var e map[string]any
			x.ok(json.Unmarshal(r.body, &e))
			equal(x, "__type", e["__type"], any("com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"))
			if text, _ := e["message"].(string); !strings.Contains(text, "Requested resource not found") {
				x.fatalf("message: got %q", e["message"])
			}
		}},
		{name: "wire/namespaces of errors", run: func(x *exam) { // architect/dynalite, test/connection.js and test/helpers.js
			for body, want := range map[string]string{`{`: "com.amazon.coral.service#SerializationException", `{}`: "com.amazon.coral.validate#ValidationException"} {
				var e map[string]any
				x.ok(json.Unmarshal(x.send("PutItem", body).body, &e))
				equal(x, "__type", e["__type"], any(want))
			}
			var e map[string]any
			x.ok(json.Unmarshal(x.send("PutItem", `{"TableName":1}`).body, &e))
			if text, _ := e["Message"].(string); text == "" {
				x.fatalf("a SerializationException without Message: %v", e)
			}
			x.ok(json.Unmarshal(x.send("DoesNotExist", `{}`).body, &e))
			equal(x, "__type", e["__type"], any("com.amazon.coral.service#UnknownOperationException"))
		}},
		{name: "wire/checksum and request ID", run: func(x *exam) {
			for _, r := range []reply{x.send("ListTables", "{}"), x.send("DescribeTable", "{}")} {
				equal(x, "checksum", r.header.Get("X-Amz-Crc32"), strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.body)), 10))
				if r.header.Get("X-Amzn-Requestid") == "" {
					x.fatalf("no request ID")
				}
				if _, err := http.ParseTime(r.header.Get("Date")); err != nil {
					x.fatalf("date: %v", err)
				}
			}
		}},
		{name: "wire/members it does not know are skipped", keys: "id:S", run: func(x *exam) {
			r := x.send("PutItem", `{"TableName":"`+x.table+`","Item":{"id":{"S":"a"}},"Unknown":{"x":[1,2]}}`)
			equal(x, "status", r.status, http.StatusOK)
			x.stored(m{"id": "a"}, m{"id": "a"})
		}},
		{name: "wire/an answer without an item has no member for it", keys: "id:S", run: func(x *exam) {
			r := x.send("GetItem", `{"TableName":"`+x.table+`","Key":{"id":{"S":"a"}}}`)
			equal(x, "body", string(bytes.TrimSpace(r.body)), "{}")
		}},
	}
	all = append(all, testCase{name: "wire/a cancelled transaction's shape", run: func(x *exam) { // recorded: boto/boto3 issue 2657
		x.use("id:S")
		x.fill(m{"id": "a"})
		r := x.send("TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"`+x.table+`","Item":{"id":{"S":"a"}},"ConditionExpression":"attribute_not_exists(id)","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}}]}`)
		equal(x, "status", r.status, http.StatusBadRequest)
		var e map[string]any
		x.ok(json.Unmarshal(r.body, &e))
		text, _ := json.Marshal(e) // of what was JSON, with its names sorted
		equal(x, "body", string(text), `{"CancellationReasons":[{"Code":"ConditionalCheckFailed","Item":{"id":{"S":"a"}},"Message":"The conditional request failed"}],`+
			`"Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [ConditionalCheckFailed]","__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}`)
	}}, testCase{name: "wire/a failed condition's shape", run: func(x *exam) { // AWS, API_PutItem, Errors: Item is the item that failed the check
		x.use("id:S")
		x.fill(m{"id": "a"})
		put := `{"TableName":"` + x.table + `","Item":{"id":{"S":"a"}},"ConditionExpression":"attribute_not_exists(id)"`
		const failed = `"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}`
		for more, want := range map[string]string{`}`: "{" + failed, `,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`: `{"Item":{"id":{"S":"a"}},` + failed} {
			var e map[string]any
			x.ok(json.Unmarshal(x.send("PutItem", put+more).body, &e))
			text, _ := json.Marshal(e)
			equal(x, "body", string(text), want)
		}
	}}, testCase{name: "wire/a deleted table's description", run: func(x *exam) { // AWS, API_DeleteTable, Examples
		x.use("id:S")
		var out struct{ TableDescription map[string]any }
		x.ok(json.Unmarshal(x.send("DeleteTable", `{"TableName":"`+x.table+`"}`).body, &out))
		d := out.TableDescription
		for _, name := range []string{"ItemCount", "ProvisionedThroughput", "TableArn", "TableId", "TableName", "TableSizeBytes", "TableStatus"} {
			if d[name] == nil {
				x.fatalf("no %s in %v", name, d)
			}
		}
		for _, name := range []string{"KeySchema", "AttributeDefinitions", "CreationDateTime"} {
			if d[name] != nil {
				x.fatalf("%s in %v", name, d)
			}
		}
		equal(x, "decreases", d["ProvisionedThroughput"].(map[string]any)["NumberOfDecreasesToday"], any(0.0))
	}})
	item := func(v string) string { return `{"TableName":"abc","Item":{"id":{"S":"a"},"v":` + v + `}}` }
	for _, c := range []struct{ what, op, body, code string }{
		{"no JSON", "PutItem", `{`, syntax}, {"nothing", "PutItem", ``, syntax}, {"a string", "PutItem", `"x"`, syntax}, {"something after it", "PutItem", `{}}`, syntax},
		{"null", "PutItem", `null`, syntax}, {"null in white space", "PutItem", " null\n", syntax}, {"a value not in UTF-8", "PutItem", item(`{"S":"` + "\xff" + `"}`), syntax}, {"a name not in UTF-8", "PutItem", item(`{"M":{"` + "\xc3\x28" + `":{"S":"a"}}}`), syntax},
		{"a throughput of one kind", "CreateTable", `{"TableName":"NEW","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"ProvisionedThroughput":{"ReadCapacityUnits":1}}`, invalid},
		{"an empty throughput", "UpdateTable", `{"TableName":"abc","ProvisionedThroughput":{}}`, invalid}, {"no name of an attribute", "UpdateTimeToLive", `{"TableName":"T","TimeToLiveSpecification":{"Enabled":true}}`, invalid}, {"no tags", "TagResource", `{"ResourceArn":"ARN"}`, invalid}, {"no ARN", "TagResource", `{"Tags":[{"Key":"k","Value":"v"}]}`, invalid},
		{"a tag without a value", "TagResource", `{"ResourceArn":"ARN","Tags":[{"Key":"k"}]}`, invalid}, {"no setting", "UpdateContinuousBackups", `{"TableName":"T"}`, invalid},
		{"a name that is a number", "PutItem", `{"TableName":1,"Item":{"id":{"S":"a"}}}`, syntax}, {"an item that is a list", "PutItem", `{"TableName":"abc","Item":[]}`, syntax}, {"an item that is a string", "PutItem", `{"TableName":"T","Item":"x"}`, syntax},
		{"a value that is a string", "PutItem", item(`"x"`), syntax}, {"S that is a number", "PutItem", item(`{"S":1}`), syntax}, {"N that is a number", "PutItem", item(`{"N":1}`), syntax}, {"BOOL that is a string", "PutItem", item(`{"BOOL":"x"}`), syntax},
		{"SS that is a string", "PutItem", item(`{"SS":"x"}`), syntax}, {"L that is a map", "PutItem", item(`{"L":{}}`), syntax}, {"M that is a list", "PutItem", item(`{"M":[]}`), syntax}, {"bytes not in base64", "PutItem", item(`{"B":"%%%"}`), syntax},
		{"a value of no type", "PutItem", item(`{}`), invalid}, {"a value of two types", "PutItem", item(`{"S":"x","N":"1"}`), invalid}, {"a value of an unknown type", "PutItem", item(`{"X":"x"}`), invalid},
		{"no table", "PutItem", `{"Item":{"id":{"S":"a"}}}`, invalid}, {"no item", "PutItem", `{"TableName":"T"}`, invalid}, {"no key", "GetItem", `{"TableName":"T"}`, invalid},
		{"no key of an update", "UpdateItem", `{"TableName":"T"}`, invalid}, {"no key of a delete", "DeleteItem", `{"TableName":"T"}`, invalid}, {"no requests", "BatchWriteItem", `{}`, invalid}, {"no keys", "BatchGetItem", `{}`, invalid}, {"no actions", "TransactWriteItems", `{}`, invalid}, {"no statement", "ExecuteStatement", `{}`, invalid},
		{"an expression that is a map", "PutItem", `{"TableName":"abc","Item":{"id":{"S":"a"}},"ConditionExpression":{}}`, syntax}, {"a limit that is a string", "Scan", `{"TableName":"T","Limit":"x"}`, syntax},
	} {
		all = append(all, testCase{name: "wire/" + c.op + " with " + c.what, keys: "id:S", run: func(x *exam) {
			r := x.send(c.op, strings.NewReplacer(`"T"`, `"`+x.table+`"`, `"NEW"`, `"`+x.newName()+`"`, `"ARN"`, `"`+*x.arn()+`"`).Replace(c.body))
			equal(x, "code", r.code(), c.code)
			equal(x, "status", r.status, http.StatusBadRequest)
		}})
	}
	return all
}

// What AWS says of a transaction with two faults. Recorded: paritysuite/dynamodb-conformance,
// validation-ordering/transactions.test.ts.
var orderCases = []testCase{
	{name: "order/members before tables and items", keys: "id:S", run: func(x *exam) {
		const capacity = "Value 'DOG' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
		const metrics = "Value 'CAT' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]"
		twice := []ddbtypes.TransactWriteItem{x.txPut(m{"id": "a"}), x.txDelete(m{"id": "a"})}
		for _, actions := range [][]ddbtypes.TransactWriteItem{{x.txPut(m{"id": "a"})}, {x.noTable()}, twice} {
			_, err := x.client().TransactWriteItems(x.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions, ReturnConsumedCapacity: "DOG"})
			x.refused(err, invalid, "1 validation error detected: "+capacity)
		}
		in := &dynamodb.TransactWriteItemsInput{TransactItems: twice[:1], ReturnItemCollectionMetrics: "CAT"}
		_, err := x.client().TransactWriteItems(x.ctx, in)
		x.refused(err, invalid, "1 validation error detected: "+metrics)
		in.ReturnConsumedCapacity = "DOG"
		_, err = x.client().TransactWriteItems(x.ctx, in)
		x.refused(err, invalid, "2 validation errors detected: "+capacity+"; "+metrics)
		in.ClientRequestToken = aws.String(strings.Repeat("t", 37))
		_, err = x.client().TransactWriteItems(x.ctx, in)
		x.refused(err, invalid, "lientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36") // alone in one Region
		x.stored(m{"id": "a"}, nil)

		get := x.txGet(m{"id": "a"}, "")
		for _, gets := range [][]ddbtypes.TransactGetItem{{get}, {get, get}} {
			_, err := x.client().TransactGetItems(x.ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets, ReturnConsumedCapacity: "DOG"})
			x.refused(err, invalid, "1 validation error detected: "+capacity)
		}
	}},
	// architect/dynalite, test/putItem.js, deleteItem.js and getItem.js: should return ValidationException for incorrect attributes.
	{name: "order/a TTL without members", keys: "id:S", run: func(x *exam) { // recorded: the finding DDB-TABLE-457 of ack-api-quirks
		const name = "Value null at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must not be null"
		const enabled = "Value null at 'timeToLiveSpecification.enabled' failed to satisfy constraint: Member must not be null"
		for spec, text := range map[string]string{`{}`: "2 validation errors detected: " + name + "; " + enabled, `{"AttributeName":"expires"}`: "1 validation error detected: " + enabled} {
			x.says("UpdateTimeToLive", `{"TableName":"`+x.table+`","TimeToLiveSpecification":`+spec+`}`, text)
		}
	}},
	{name: "order/every member that is wrong", run: func(x *exam) {
		const capacity = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]; "
		const name = "Value 'abc;' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; "
		const returns = "Value 'hi' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]; "
		const metrics = "Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]"
		missing := func(member string) string {
			return "Value null at '" + member + "' failed to satisfy constraint: Member must not be null"
		}
		const body = `{"TableName":"abc;","ReturnConsumedCapacity":"hi"`
		const writing = body + `,"ReturnItemCollectionMetrics":"hi","ReturnValues":"hi"}`
		for _, c := range []struct{ op, body, text string }{
			{"PutItem", writing, "5 validation errors detected: " + capacity + name + missing("item") + "; " + returns + metrics},
			{"DeleteItem", writing, "5 validation errors detected: " + capacity + name + returns + metrics + "; " + missing("key")},
			{"GetItem", body + "}", "3 validation errors detected: " + capacity + name + missing("key")},
		} {
			x.says(c.op, c.body, c.text)
		}
	}},
	// architect/dynalite, test/query.js, test/scan.js and test/createTable.js, "for incorrect attributes" and "for null attributes": AWS
	// names all that are wrong, in no fixed order. There is no table of the name.
	{name: "order/every member of a Query, a Scan and a table", run: func(x *exam) {
		const one = " failed to satisfy constraint: Member must "
		names := []string{
			"Value 'hi' at 'returnConsumedCapacity'" + one + "satisfy enum value set: [INDEXES, TOTAL, NONE]",
			"Value 'hi' at 'select'" + one + "satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]",
			"Value 'abc;' at 'tableName'" + one + "satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
			"Value 'a;' at 'indexName'" + one + "satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
			"Value 'a;' at 'indexName'" + one + "have length greater than or equal to 3",
		}
		const page = `{"TableName":"abc;","ReturnConsumedCapacity":"hi","Select":"hi","IndexName":"a;"`
		var tooMany []string
		for i := range 3 {
			index := fmt.Sprintf("Value null at 'globalSecondaryIndexes.%d.member.", i+1)
			tooMany = append(tooMany, index+"keySchema'"+one+"not be null", index+"projection'"+one+"not be null", index+"indexName'"+one+"not be null")
		}
		for _, c := range []struct {
			op, body string
			texts    []string
		}{
			{"Query", page + `}`, names},
			{"Scan", page + `,"Limit":-1,"Segment":-1,"TotalSegments":-1}`, append([]string{
				"Value '-1' at 'limit'" + one + "have value greater than or equal to 1",
				"Value '-1' at 'segment'" + one + "have value greater than or equal to 0",
				"Value '-1' at 'totalSegments'" + one + "have value greater than or equal to 1",
			}, names...)},
			{"CreateTable", `{"TableName":"abc;"}`, []string{
				"Value null at 'attributeDefinitions'" + one + "not be null",
				"Value 'abc;' at 'tableName'" + one + "satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
				"Value null at 'keySchema'" + one + "not be null",
			}},
			{"CreateTable", `{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"X"}],"KeySchema":[{"AttributeName":"a","KeyType":"hi"}],"BillingMode":"hi","ProvisionedThroughput":{"WriteCapacityUnits":-1}}`, []string{
				"Value 'X' at 'attributeDefinitions.1.member.attributeType'" + one + "satisfy enum value set: [B, N, S]",
				"Value 'hi' at 'keySchema.1.member.keyType'" + one + "satisfy enum value set: [HASH, RANGE]",
				"Value 'hi' at 'billingMode'" + one + "satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
				"Value '-1' at 'provisionedThroughput.writeCapacityUnits'" + one + "have value greater than or equal to 1",
				"Value null at 'provisionedThroughput.readCapacityUnits'" + one + "not be null",
			}},
			{"CreateTable", `{"TableName":"abc","AttributeDefinitions":[],"KeySchema":[],"BillingMode":"PAY_PER_REQUEST"}`, []string{
				"Value '[]' at 'keySchema'" + one + "have length greater than or equal to 1",
			}},
			{"CreateTable", `{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST","GlobalSecondaryIndexes":[{},{},{}]}`, tooMany},
		} {
			r := x.send(c.op, c.body)
			equal(x, "code", r.code(), invalid)
			var e struct{ Message string }
			x.ok(json.Unmarshal(r.body, &e))
			count, list, _ := strings.Cut(e.Message, " detected: ")
			got := strings.Split(list, "; ")
			slices.Sort(got)
			slices.Sort(c.texts)
			equal(x, c.op, strings.Join(got, "; "), strings.Join(c.texts, "; "))
			equal(x, c.op, count, fmt.Sprintf("%d validation error%s", len(c.texts), map[bool]string{true: "s"}[len(c.texts) > 1]))
		}
	}},
	// paritysuite/dynamodb-conformance, validation-ordering/createTable.test.ts: global indexes first.
	{name: "order/index names of both kinds", run: func(x *exam) {
		const index = `[{"IndexName":"%s","KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}]`
		r := x.send("CreateTable", `{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"S"}],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],"BillingMode":"PAY_PER_REQUEST","LocalSecondaryIndexes":`+
			fmt.Sprintf(index, "aa")+`,"GlobalSecondaryIndexes":`+fmt.Sprintf(index, "zz")+`}`)
		var e struct{ Message string }
		x.ok(json.Unmarshal(r.body, &e))
		const short = ".1.member.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3"
		equal(x, "text", e.Message, "2 validation errors detected: Value 'zz' at 'globalSecondaryIndexes"+short+"; Value 'aa' at 'localSecondaryIndexes"+short)
	}},
	// nubo-db/dynamodb-conformance, error-messages/createTable.test.ts, query.test.ts and scan.test.ts.
	{name: "order/texts of a Query, a Scan and a table", run: func(x *exam) {
		const table = `{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST","KeySchema":`
		const key = `{"AttributeName":"a","KeyType":"HASH"}`
		const shown = "KeySchemaElement(attributeName=a, keyType=HASH)"
		name := strings.Repeat("n", 256)
		for _, c := range []struct{ op, body, text string }{
			{"CreateTable", `{"AttributeDefinitions":[],"KeySchema":[]}`, "The parameter 'TableName' is required but was not present in the request"},
			{"CreateTable", table + `[` + key + `,{"AttributeName":"a","KeyType":"RANGE"}]}`, "Invalid KeySchema: Some index key attribute have no definition"},
			{"CreateTable", table + `[` + key + `,` + key + `,` + key + `]}`, "1 validation error detected: Value '[" + shown + ", " + shown + ", " + shown + "]' at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2"},
			{"Query", `{"TableName":"abc","KeyConditionExpression":"id = :a","ExpressionAttributeValues":{":a":{"S":"a"}},"Limit":0}`, "1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
			{"Scan", `{"TableName":"abc","Limit":0}`, "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
			{"Scan", `{"TableName":"abc","Segment":0,"TotalSegments":1000001}`, "1 validation error detected: Value '1000001' at 'totalSegments' failed to satisfy constraint: Member must have value less than or equal to 1000000"},
			{"Scan", `{"TableName":"` + name + `"}`, "1 validation error detected: Value '" + name + "' at 'tableName' failed to satisfy constraint: Member must have length less than or equal to 255"},
		} {
			x.says(c.op, c.body, c.text)
		}
	}},
	// paritysuite/dynamodb-conformance, validation-ordering/batchOperations.test.ts and error-messages/batchWriteItem.test.ts
	{name: "order/members of batches", keys: "id:S", run: func(x *exam) {
		const capacity = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
		const metrics = "Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]"
		const names = "' at 'requestItems' failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"
		const put = `[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]`
		const key = `{"Keys":[{"id":{"S":"a"}}]}`
		for _, c := range []struct{ op, body, from, to string }{
			{"BatchWriteItem", `{"RequestItems":{"none":` + put + `},"ReturnConsumedCapacity":"hi","ReturnItemCollectionMetrics":"hi"}`, "2 validation errors detected: " + capacity, "; " + metrics},
			{"BatchWriteItem", `{"RequestItems":{"bad!name":` + put + `},"ReturnConsumedCapacity":"hi"}`, "1 validation error detected: " + capacity, capacity},
			{"BatchWriteItem", `{"RequestItems":{"bad!name":` + put + `}}`, "1 validation error detected: Value '{bad!name=[", names},
			{"BatchWriteItem", `{"RequestItems":{"none":[]}}`, "1 validation error detected: Value '{none=[]}' at 'requestItems' failed", "[Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"},
			{"BatchGetItem", `{"RequestItems":{"none":` + key + `},"ReturnConsumedCapacity":"hi"}`, "1 validation error detected: " + capacity, capacity},
		} {
			r := x.send(c.op, c.body)
			equal(x, "code of "+c.op, r.code(), invalid)
			var e struct{ Message string }
			x.ok(json.Unmarshal(r.body, &e))
			if !strings.HasPrefix(e.Message, c.from) || !strings.HasSuffix(e.Message, c.to) {
				x.fatalf("%s %s: %s, want %s ... %s", c.op, c.body, e.Message, c.from, c.to)
			}
		}
		x.says("BatchGetItem", `{"RequestItems":{"bad!name":`+key+`},"ReturnConsumedCapacity":"hi"}`, `2 validation errors detected: Value '{"bad!name":`+key+"}"+names+"; "+capacity)
	}},
	{name: "order/expressions before tables and items", keys: "id:S", run: func(x *exam) {
		bad := x.txCheck(m{"id": "b"}, args{condition: "attribute_not_exists("})
		const syntax = "Invalid ConditionExpression: Syntax error"
		unused := x.txCheck(m{"id": "b"}, args{condition: "attribute_not_exists(id)"})
		unused.ConditionCheck.ExpressionAttributeValues = attributes(m{":v": 1})
		const value = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}"
		for _, c := range []struct {
			actions []ddbtypes.TransactWriteItem
			text    string
		}{
			{[]ddbtypes.TransactWriteItem{x.noTable(), bad}, syntax},
			{[]ddbtypes.TransactWriteItem{bad, x.noTable()}, syntax},
			{[]ddbtypes.TransactWriteItem{x.noTable(), unused}, value},
			{[]ddbtypes.TransactWriteItem{unused, x.noTable()}, value},
			{[]ddbtypes.TransactWriteItem{x.txPut(m{"id": "b"}), unused}, value},
			{[]ddbtypes.TransactWriteItem{x.txPut(m{"id": "b"}), bad}, syntax},
			{[]ddbtypes.TransactWriteItem{unused, bad}, value},
			{[]ddbtypes.TransactWriteItem{bad, unused}, syntax},
			{[]ddbtypes.TransactWriteItem{bad, x.txPut(m{"id": "a", "v": nested(33)})}, syntax},
			{[]ddbtypes.TransactWriteItem{x.txPut(m{"id": "a", "v": nested(33)}), bad}, "Nesting Levels have exceeded supported limits"},
		} {
			x.refused(x.transact(c.actions...), invalid, c.text)
		}
		x.stored(m{"id": "b"}, nil)
	}},
}

// noTable is a put into a table that does not exist.
func (x *exam) noTable() ddbtypes.TransactWriteItem {
	put := x.txPut(m{"id": "a"})
	put.Put.TableName = aws.String(x.newName())
	return put
}
