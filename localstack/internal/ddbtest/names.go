package ddbtest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// longName returns an attribute's name of so many bytes.
func longName(bytes int) string { return strings.Repeat("n", bytes) }

// createIndexed tries to create a table with the key a and b, the global index gsi on c and the local index lsi on a and c.
func (x *exam) createIndexed(change func(*dynamodb.CreateTableInput)) error {
	return x.tryCreate(func(in *dynamodb.CreateTableInput) {
		in.KeySchema, in.AttributeDefinitions = schema("a:S", "b:S")
		addGlobal(in, "gsi", everything, "c:S")
		local, _ := schema("a:S", "c:S")
		in.LocalSecondaryIndexes = []ddbtypes.LocalSecondaryIndex{{IndexName: aws.String("lsi"), KeySchema: local, Projection: &everything}}
		change(in)
	})
}

// The tests of scylladb/scylladb test/alternator/test_limits.py that ran on AWS, test_limit_attribute_length_...
var nameCases = []testCase{
	{name: "name/65,535 bytes", run: func(x *exam) { // ...nonkey_good
		x.use("id:S")
		long := longName(65535)
		x.ok(x.put(m{"id": "a", long: 1}).err)
		x.ok(x.update(m{"id": "a"}, args{update: "SET #n = #n + :v", condition: "#n = :v", names: map[string]string{"#n": long}, values: m{":v": 1}}).err)
		x.stored(m{"id": "a"}, m{"id": "a", long: 2})
	}},
	{name: "name/65,536 bytes or none", run: func(x *exam) { // ...nonkey_bad
		x.use("id:S")
		for bad, text := range map[string]string{longName(65536): "6553", "": ""} {
			x.refused(x.put(m{"id": "a", bad: 1}).err, invalid, text)
			x.refused(x.put(m{"id": "a", "v": m{bad: 1}}).err, invalid, text)
			x.refused(x.put(m{"id": "a", "v": l{m{bad: 1}}}).err, invalid, text)
			names := map[string]string{"#n": bad}
			x.refused(x.update(m{"id": "a"}, args{update: "SET #n = :v", names: names, values: m{":v": 1}}).err, invalid, text)
			x.refused(x.update(m{"id": "a"}, args{update: "SET v = :v", values: m{":v": m{bad: 1}}}).err, invalid, text)
			x.refused(x.update(m{"id": "a"}, args{update: "SET v = :v", condition: "#n = :v", names: names, values: m{":v": 1}}).err, invalid, text)
			_, err := x.client().GetItem(x.ctx, &dynamodb.GetItemInput{TableName: &x.table, Key: attributes(m{"id": "a"}), ProjectionExpression: aws.String("#n"), ExpressionAttributeNames: names})
			x.refused(err, invalid, text)
		}
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "name/none in a statement", keys: "id:S", run: func(x *exam) {
		for _, statement := range []string{`INSERT INTO "T" VALUE {'id': 'a', '': 1}`, `INSERT INTO "T" VALUE {'id': 'a', 'v': {'': 1}}`, `UPDATE "T" SET "" = 1 WHERE id = 'a'`} {
			_, err := x.execute(statement)
			x.refused(err, invalid)
		}
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "name/a key of 255 bytes", run: func(x *exam) { // ...key_good, ...gsi_lsi_good
		long := [4]string{"1" + longName(254), "2" + longName(254), "3" + longName(254), "4" + longName(254)}
		in := &dynamodb.CreateTableInput{}
		in.KeySchema, in.AttributeDefinitions = schema(long[0]+":S", long[1]+":S")
		addGlobal(in, "gsi", everything, long[2]+":S", long[3]+":S")
		x.create(in)
		i := m{long[0]: "a", long[1]: "b", long[2]: "c", long[3]: "d"}
		x.fill(i)
		x.stored(m{long[0]: "a", long[1]: "b"}, i)
	}},
	{name: "name/a key of 256 bytes or none", run: func(x *exam) { // ...key_bad, ...key_bad_incoherent_names, ...gsi_lsi_bad
		for bad, text := range map[string]string{longName(256): "255", "": ""} {
			for _, change := range []func(*dynamodb.CreateTableInput){
				func(in *dynamodb.CreateTableInput) { in.KeySchema, in.AttributeDefinitions = schema(bad + ":S") },
				func(in *dynamodb.CreateTableInput) { in.KeySchema, in.AttributeDefinitions = schema("x:S", bad+":S") },
				func(in *dynamodb.CreateTableInput) { in.KeySchema, _ = schema(bad + ":S") },
				func(in *dynamodb.CreateTableInput) { _, in.AttributeDefinitions = schema(bad + ":S") },
			} {
				x.refused(x.tryCreate(change), invalid, text)
			}
			for _, change := range []func(*dynamodb.CreateTableInput){
				func(in *dynamodb.CreateTableInput) {
					in.AttributeDefinitions[2].AttributeName, in.GlobalSecondaryIndexes[0].KeySchema[0].AttributeName, in.LocalSecondaryIndexes[0].KeySchema[1].AttributeName = &bad, &bad, &bad
				},
				func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes[0].KeySchema[0].AttributeName = &bad },
				func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes[0].KeySchema[1].AttributeName = &bad },
			} {
				x.refused(x.createIndexed(change), invalid, text)
			}
		}
	}},
	{name: "name/a projected attribute of 256 bytes", run: func(x *exam) { // ...gsi_lsi_projection_bad, ...gsi_lsi_projection_all
		include := func(names ...string) *ddbtypes.Projection {
			return &ddbtypes.Projection{ProjectionType: "INCLUDE", NonKeyAttributes: names}
		}
		for _, bad := range []string{longName(256), ""} {
			x.refused(x.createIndexed(func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes[0].Projection = include("v", bad) }), invalid)
			x.refused(x.createIndexed(func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes[0].Projection = include(bad) }), invalid)
		}
		x.useIndexed(*include(longName(255)))
		x.useIndexed(everything)
		x.ok(x.put(m{"id": "a", "owner": "me", "pos": 1, longName(256): 1}).err)
	}},
	{name: "name/a TTL attribute of 256 bytes", run: func(x *exam) { // test_ttl.py, test_update_ttl_errors
		x.use("id:S")
		x.refused(x.setTTL(longName(256), true), invalid, "255")
		x.refused(x.setTTL("", true), invalid)
		x.ok(x.setTTL(longName(255), true))
	}},
}
