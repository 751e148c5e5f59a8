package memdynamodb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// events returns a client of a server with the table "events" (partition key "g", sort key "seq"), with n items in each
// of the groups. Its index "byKind", on "kind" and "at", has only the items with an odd seq.
func events(t *testing.T, n int, groups ...string) *dynamodb.Client {
	t.Helper()
	srv := memdynamodb.New()
	t.Cleanup(srv.Close)
	c := client(srv)
	key := func(name string, kind ddbtypes.KeyType) ddbtypes.KeySchemaElement {
		return ddbtypes.KeySchemaElement{AttributeName: &name, KeyType: kind}
	}
	def := func(name string, kind ddbtypes.ScalarAttributeType) ddbtypes.AttributeDefinition {
		return ddbtypes.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	if _, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("events"), BillingMode: "PAY_PER_REQUEST",
		AttributeDefinitions: []ddbtypes.AttributeDefinition{def("g", "S"), def("seq", "N"), def("kind", "S"), def("at", "N")},
		KeySchema:            []ddbtypes.KeySchemaElement{key("g", "HASH"), key("seq", "RANGE")},
		GlobalSecondaryIndexes: []ddbtypes.GlobalSecondaryIndex{{IndexName: aws.String("byKind"), Projection: &ddbtypes.Projection{ProjectionType: "KEYS_ONLY"},
			KeySchema: []ddbtypes.KeySchemaElement{key("kind", "HASH"), key("at", "RANGE")}}},
	}); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for i := n - 1; i >= 0; i-- { // in the reverse of their order
			it := item{"g": str(g), "seq": num(fmt.Sprint(i)), "v": num(fmt.Sprint(i % 3))}
			if i%2 == 1 {
				it["kind"], it["at"] = str("odd"), num(fmt.Sprint(-i))
			}
			putItem(t, c, "events", it)
		}
	}
	return c
}

func keysOf(its []map[string]ddbtypes.AttributeValue) []string {
	var keys []string
	for _, it := range its {
		keys = append(keys, it["g"].(*ddbtypes.AttributeValueMemberS).Value+it["seq"].(*ddbtypes.AttributeValueMemberN).Value)
	}
	return keys
}

func TestQuery(t *testing.T) {
	t.Parallel()
	c := events(t, 12, "a", "b")
	for _, tt := range []struct {
		condition string
		change    func(*dynamodb.QueryInput)
		want      string
		scanned   int32
	}{
		{"g = :g", nil, "b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11", 12}, // by number, not by text
		{"g = :g AND seq > :n", nil, "b10 b11", 2},
		{"g = :g AND seq BETWEEN :m AND :n", func(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }, "b9 b8 b7", 3},
		{"g = :g AND seq <= :n", func(in *dynamodb.QueryInput) { in.FilterExpression = aws.String("v = :two") }, "b2 b5 b8", 10},
		{"g = :none", nil, "", 0},
	} {
		in := &dynamodb.QueryInput{TableName: aws.String("events"), KeyConditionExpression: aws.String(tt.condition), ExpressionAttributeValues: item{}}
		if tt.change != nil {
			tt.change(in)
		}
		for name, v := range map[string]ddbtypes.AttributeValue{":g": str("b"), ":none": str("x"), ":n": num("9"), ":m": num("7"), ":two": num("2")} {
			if strings.Contains(tt.condition+" "+aws.ToString(in.FilterExpression)+" ", name) && (name != ":n" || !strings.Contains(tt.condition, ":none")) {
				in.ExpressionAttributeValues[name] = v
			}
		}
		// Whole, and in pages of every size: the same items in the same order.
		for limit := range int32(13) {
			if limit > 0 {
				in.Limit = &limit
			}
			in.ExclusiveStartKey = nil
			var got []string
			var scanned int32
			for {
				out, err := c.Query(t.Context(), in)
				if err != nil {
					t.Fatalf("%s: %v", tt.condition, err)
				}
				got = append(got, keysOf(out.Items)...)
				scanned += out.ScannedCount
				if in.ExclusiveStartKey = out.LastEvaluatedKey; out.LastEvaluatedKey == nil {
					break
				}
			}
			if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" && (tt.want != "" || got != nil) || scanned != tt.scanned {
				t.Errorf("%s, limit %d: scanned %d, want %d: %s", tt.condition, limit, scanned, tt.scanned, diff)
			}
		}
	}
}

func TestPageOfOneMegabyte(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for i := range 5 {
		putItem(t, c, "orders", item{"id": str(fmt.Sprint(i)), "v": str(strings.Repeat("v", 300<<10))})
	}
	n, pages := 0, 0
	in := &dynamodb.ScanInput{TableName: orders, Select: "COUNT"}
	for {
		out, err := c.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		n += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; out.LastEvaluatedKey == nil {
			break
		}
	}
	if n != 5 || pages != 2 {
		t.Errorf("%d items in %d pages, want 5 in 2", n, pages)
	}
}
