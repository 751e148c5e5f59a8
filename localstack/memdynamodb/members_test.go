package memdynamodb_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

const (
	placeholders = "ExpressionAttributeNames ExpressionAttributeValues"
	action       = "ConditionExpression " + placeholders + " ReturnValuesOnConditionCheckFailure TableName"
	one          = action + " ReturnConsumedCapacity ReturnItemCollectionMetrics ReturnValues"
	reading      = "ConsistentRead ExclusiveStartKey FilterExpression IndexName Limit ProjectionExpression ReturnConsumedCapacity Select TableName " + placeholders
	keys         = "KeySchema KeySchema.AttributeName KeySchema.KeyType"
	newIndex     = "IndexName Projection Projection.NonKeyAttributes Projection.ProjectionType " + keys
	units        = "ProvisionedThroughput ProvisionedThroughput.ReadCapacityUnits ProvisionedThroughput.WriteCapacityUnits"
	settings     = "TableName AttributeDefinitions AttributeDefinitions.AttributeName AttributeDefinitions.AttributeType BillingMode DeletionProtectionEnabled SSESpecification SSESpecification.Enabled " +
		"SSESpecification.KMSMasterKeyId SSESpecification.SSEType StreamSpecification StreamSpecification.StreamEnabled StreamSpecification.StreamViewType TableClass " + units
	statement = "ConsistentRead Parameters ReturnValuesOnConditionCheckFailure Statement"
)

// within puts the path of an object before its members.
func within(path, members string) string {
	all := path
	for _, m := range strings.Fields(members) {
		all += " " + path + "." + m
	}
	return all
}

// implemented are the members of each operation that the server has. It refuses every other one by name.
var implemented = map[string]string{
	"CreateTable":               settings + " " + keys + " Tags Tags.Key Tags.Value " + within("GlobalSecondaryIndexes", newIndex+" "+units) + " " + within("LocalSecondaryIndexes", newIndex),
	"UpdateTable":               settings + " " + within("GlobalSecondaryIndexUpdates", within("Create", newIndex+" "+units)+" "+within("Update", "IndexName "+units)+" "+within("Delete", "IndexName")),
	"DescribeTable":             "TableName",
	"DeleteTable":               "TableName",
	"ListTables":                "ExclusiveStartTableName Limit",
	"UpdateTimeToLive":          "TableName " + within("TimeToLiveSpecification", "AttributeName Enabled"),
	"DescribeTimeToLive":        "TableName",
	"TagResource":               "ResourceArn Tags Tags.Key Tags.Value",
	"UntagResource":             "ResourceArn TagKeys",
	"ListTagsOfResource":        "ResourceArn NextToken",
	"UpdateContinuousBackups":   "TableName " + within("PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled RecoveryPeriodInDays"),
	"DescribeContinuousBackups": "TableName",
	"GetItem":                   "ConsistentRead Key ProjectionExpression ReturnConsumedCapacity TableName ExpressionAttributeNames",
	"PutItem":                   "Item " + one,
	"UpdateItem":                "Key UpdateExpression " + one,
	"DeleteItem":                "Key " + one,
	"Query":                     "KeyConditionExpression ScanIndexForward " + reading,
	"Scan":                      "Segment TotalSegments " + reading,
	"BatchGetItem":              "ReturnConsumedCapacity " + within("RequestItems", "ConsistentRead ExpressionAttributeNames Keys ProjectionExpression"),
	"BatchWriteItem":            "ReturnConsumedCapacity ReturnItemCollectionMetrics " + within("RequestItems", "PutRequest PutRequest.Item DeleteRequest DeleteRequest.Key"),
	"TransactWriteItems": "ClientRequestToken ReturnConsumedCapacity ReturnItemCollectionMetrics " +
		within("TransactItems", within("Put", "Item "+action)+" "+within("Update", "Key UpdateExpression "+action)+" "+within("Delete", "Key "+action)+" "+within("ConditionCheck", "Key "+action)),
	"TransactGetItems":      "ReturnConsumedCapacity " + within("TransactItems", within("Get", "ExpressionAttributeNames Key ProjectionExpression TableName")),
	"ExecuteStatement":      statement + " Limit NextToken ReturnConsumedCapacity",
	"BatchExecuteStatement": "ReturnConsumedCapacity " + within("Statements", statement),
	"ListStreams":           "ExclusiveStartStreamArn Limit TableName",
	"DescribeStream":        "ExclusiveStartShardId Limit StreamArn",
	"GetShardIterator":      "SequenceNumber ShardId ShardIteratorType StreamArn",
	"GetRecords":            "Limit ShardIterator",
}

// TestEveryMember walks the inputs of the SDK's operations: what the server does not have is refused by name, operations too.
func TestEveryMember(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	left := maps.Clone(implemented)
	everyMember(t, srv, c, "DynamoDB_20120810", left)
	everyMember(t, srv, testaws.Streams(srv), "DynamoDBStreams_20120810", left)
	for name := range left {
		t.Errorf("the SDK has no operation %s", name)
	}
}

// everyMember walks the inputs of a client's operations, and takes the operations from left.
func everyMember(t *testing.T, srv *memdynamodb.Server, client any, target string, left map[string]string) {
	t.Helper()
	for m := range reflect.TypeOf(client).Methods() {
		if m.Type.NumIn() < 3 || !strings.HasSuffix(m.Type.In(2).String(), m.Name+"Input") {
			continue // Options
		}
		known, ok := implemented[m.Name]
		delete(left, m.Name)
		if !ok {
			want := "memdynamodb does not implement the operation " + m.Name
			if _, _, answer := sendTo(t, srv, target, m.Name, "{}"); !strings.Contains(answer, want) {
				t.Errorf("got %s, want %s", answer, want)
			}
			continue
		}
		members := map[string]bool{}
		for _, name := range strings.Fields(known) {
			members[name] = true
		}
		walk(m.Type.In(2).Elem(), nil, func(path []string, value any) {
			name := strings.Join(slices.DeleteFunc(slices.Clone(path), func(step string) bool { return step == "[]" || step == "*" }), ".")
			body := must.Get(json.Marshal(wrapped(path, value)))(t)
			_, _, answer := sendTo(t, srv, target, m.Name, string(body))
			_, refused, _ := strings.Cut(strings.TrimSuffix(answer, `"}`), "memdynamodb does not implement the member ")
			if members[name] != (refused == "") || !strings.HasPrefix(name+".", strings.TrimPrefix(refused+".", ".")) {
				t.Errorf("%s, %s: listed as implemented is %v, answer %s", m.Name, name, members[name], answer)
			}
			delete(members, name)
		})
		for name := range members {
			t.Errorf("%s has no member %s", m.Name, name)
		}
	}
}

// walk visits the members of a struct with a value that JSON may have for each. A path has "[]" for the elements of a list and "*"
// for those of a map. Attribute values have no members of their own.
func walk(in reflect.Type, path []string, visit func(path []string, value any)) {
	for _, f := range reflect.VisibleFields(in) {
		if f.IsExported() {
			walkValue(f.Type, append(slices.Clone(path), f.Name), visit)
		}
	}
}

func walkValue(of reflect.Type, path []string, visit func(path []string, value any)) {
	switch of.Kind() {
	case reflect.Pointer:
		walkValue(of.Elem(), path, visit)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return
		}
		if of.Elem().Kind() != reflect.Struct && of.Elem().Kind() != reflect.Slice {
			visit(path, []any{})
			return
		}
		walkValue(of.Elem(), append(slices.Clone(path), "[]"), visit)
	case reflect.Map:
		if strings.Contains(of.String(), "types.AttributeValue") || of.Elem().Kind() == reflect.String {
			visit(path, map[string]any{})
			return
		}
		walkValue(of.Elem(), append(slices.Clone(path), "*"), visit)
	case reflect.Struct:
		visit(path, map[string]any{})
		walk(of, path, visit)
	default:
		visit(path, map[reflect.Kind]any{reflect.String: "x", reflect.Bool: false}[of.Kind()])
	}
}

// wrapped is the value within the objects and lists of its path.
func wrapped(path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	inner := wrapped(path[1:], value)
	if path[0] == "[]" {
		return []any{inner}
	}
	return map[string]any{path[0]: inner}
}
