package ddbtest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// useStrings creates a table with the key id and pos, a global index gsi on owner and rank, and a local index lsi on id and rank.
func (x *exam) useStrings(p ddbtypes.Projection) {
	in := &dynamodb.CreateTableInput{}
	in.KeySchema, in.AttributeDefinitions = schema("id:S", "pos:S")
	addGlobal(in, "gsi", p, "owner:S", "rank:S")
	local, _ := schema("id:S", "rank:S")
	in.LocalSecondaryIndexes = []ddbtypes.LocalSecondaryIndex{{IndexName: aws.String("lsi"), KeySchema: local, Projection: &p}}
	x.create(in)
}

func (x *exam) scanned(change func(*dynamodb.ScanInput)) (*dynamodb.ScanOutput, error) {
	in := &dynamodb.ScanInput{TableName: &x.table}
	change(in)
	return x.client().Scan(x.ctx, in)
}

var indexRuleCases = []testCase{
	{name: "index/keys of 2,048 and 1,024 bytes", run: func(x *exam) { // the texts: architect/dynalite issue 35, wellcomecollection/platform issue 2285
		x.useStrings(everything)
		long := func(bytes int) string { return strings.Repeat("k", bytes) }
		good := m{"id": "a", "pos": "1", "owner": long(2048), "rank": long(1024)}
		x.ok(x.put(good).err)
		owner := "Size limit exceeded for Index Key owner Actual Size: 2049 bytes Max Size: 2048 bytes IndexName: gsi"
		rank := "Size limit exceeded for Index Key rank Actual Size: 1025 bytes Max Size: 1024 bytes IndexName: "
		for name, c := range map[string]struct{ value, text string }{"owner": {long(2049), owner}, "rank": {long(1025), rank}} {
			x.refused(x.put(m{"id": "b", "pos": "1", name: c.value}).err, invalid, c.text) // though it would not be in the global index
			names, values := map[string]string{"#k": name}, m{":v": c.value}
			x.refused(x.update(m{"id": "a", "pos": "1"}, args{update: "SET #k = :v", names: names, values: values}).err, invalid, c.text)
			_, err := x.client().BatchWriteItem(x.ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]ddbtypes.WriteRequest{x.table: {putRequest(m{"id": "b", "pos": "1", name: c.value})}}})
			x.refused(err, invalid, c.text)
			_, err = x.client().TransactWriteItems(x.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{x.txPut(m{"id": "b", "pos": "1", name: c.value})}})
			x.refused(err, cancelled)
		}
		x.stored(m{"id": "a", "pos": "1"}, good)
		x.stored(m{"id": "b", "pos": "1"}, nil)
	}},
	{name: "index/no empty bytes as key", run: func(x *exam) { // test_gsi.py, test_gsi_empty_value_binary
		in := &dynamodb.CreateTableInput{}
		in.KeySchema, in.AttributeDefinitions = schema("id:S")
		addGlobal(in, "gsi", everything, "owner:B")
		x.create(in)
		x.refused(x.put(m{"id": "a", "owner": []byte{}}).err, invalid, "cannot contain an empty binary value. IndexName: gsi, IndexKey: owner")
	}},
	{name: "index/a filter on attributes that it does not project", run: func(x *exam) { // sensedeep/dynamodb-onetable issue 377; error-messages/partiqlIndexQualifier.test.ts
		x.useStrings(ddbtypes.Projection{ProjectionType: "INCLUDE", NonKeyAttributes: []string{"v"}})
		x.fill(m{"id": "a", "pos": "1", "owner": "me", "rank": "1", "v": 1, "w": 2})
		partitions := map[string]func(*dynamodb.QueryInput){
			"gsi": func(*dynamodb.QueryInput) {},
			"lsi": func(in *dynamodb.QueryInput) {
				in.KeyConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = aws.String("id = :me"), nil, attributes(m{":me": "a"})
			},
		}
		for index, partition := range partitions {
			query := func(filter string) (*dynamodb.QueryOutput, error) {
				return x.owned(partition, func(in *dynamodb.QueryInput) { in.IndexName, in.FilterExpression = &index, &filter })
			}
			for _, filter := range []string{"attribute_exists(w)", "attribute_exists(v) OR attribute_exists(w.x)"} {
				_, err := query(filter)
				x.refused(err, invalid, "One or more parameter values were invalid: Secondary index "+index+" does not project one or more filter attributes: [w]")
			}
			out := suite.Get(query("attribute_exists(v)"))
			equal(x, index+", projected", out.Count, 1)
			// A scan finds no such attribute in any item.
			for filter, count := range map[string]int32{"attribute_exists(w)": 0, "attribute_not_exists(w)": 1, "attribute_exists(v)": 1} {
				out := suite.Get(x.scanned(func(in *dynamodb.ScanInput) { in.IndexName, in.FilterExpression = &index, &filter }))
				equal(x, index+" scanned, "+filter, out.Count, count)
			}
		}
	}},
	{name: "index/a hundred projected names in all", run: func(x *exam) { // AWS, ServiceQuotas: a name in two indexes counts twice
		project := func(each ...int) *dynamodb.CreateTableInput {
			in := &dynamodb.CreateTableInput{TableName: aws.String(x.newName()), BillingMode: "PAY_PER_REQUEST"}
			in.KeySchema, in.AttributeDefinitions = schema("id:S")
			for i, n := range each {
				p := &ddbtypes.Projection{ProjectionType: "INCLUDE"}
				for name := range n {
					p.NonKeyAttributes = append(p.NonKeyAttributes, fmt.Sprint(name))
				}
				in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, ddbtypes.GlobalSecondaryIndex{IndexName: aws.String(fmt.Sprint("gsi", i)), KeySchema: in.KeySchema, Projection: p})
			}
			return in
		}
		_, err := x.client().CreateTable(x.ctx, project(20, 20, 20, 20, 20, 1))
		x.refused(err, invalid)
		x.create(project(20, 20, 20, 20, 19, 1))
	}},
	{name: "index/projections refused", run: func(x *exam) { // ack-api-quirks DDB-TABLE-126
		var many []string
		for i := range 21 {
			many = append(many, fmt.Sprint(i))
		}
		for text, p := range map[string]ddbtypes.Projection{
			"Duplicate element in NonKeyAttributes: x":                         {ProjectionType: "INCLUDE", NonKeyAttributes: []string{"x", "y", "x"}},
			"ProjectionType is INCLUDE, but NonKeyAttributes is not specified": {ProjectionType: "INCLUDE"},
			"Member must have length greater than or equal to 1":               {ProjectionType: "INCLUDE", NonKeyAttributes: []string{}},
			"Member must have length less than or equal to 20":                 {ProjectionType: "INCLUDE", NonKeyAttributes: many},
			"ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified":   {ProjectionType: "KEYS_ONLY", NonKeyAttributes: []string{"x"}},
			"ProjectionType is ALL, but NonKeyAttributes is specified":         {ProjectionType: "ALL", NonKeyAttributes: []string{"x"}},
			"Unknown ProjectionType: null":                                     {},
			"rojectionType":                                                    {ProjectionType: "all"},
		} {
			x.refused(x.createIndexed(func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes[0].Projection = &p }), invalid, text)
			x.refused(x.createIndexed(func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes[0].Projection = &p }), invalid, text)
		}
	}},
	{name: "index/definitions refused", run: func(x *exam) { // ack-api-quirks DDB-TABLE-043, 127, 128 and 129
		for text, change := range map[string]func(*dynamodb.CreateTableInput){
			"List of GlobalSecondaryIndexes is empty": func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes = []ddbtypes.GlobalSecondaryIndex{}
			},
			"List of LocalSecondaryIndexes is empty": func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes = []ddbtypes.LocalSecondaryIndex{} },
			"Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex": func(in *dynamodb.CreateTableInput) {
				in.KeySchema, in.AttributeDefinitions = in.KeySchema[:1], append(in.AttributeDefinitions[:1], in.AttributeDefinitions[2])
			},
			"Index KeySchema does not have a range key for index: lsi": func(in *dynamodb.CreateTableInput) {
				in.LocalSecondaryIndexes[0].KeySchema = in.LocalSecondaryIndexes[0].KeySchema[:1]
			},
			"Index KeySchema does not have the same leading hash key as table KeySchema for index: lsi. index hash key: b, table hash key: a": func(in *dynamodb.CreateTableInput) {
				in.LocalSecondaryIndexes[0].KeySchema[0].AttributeName = aws.String("b")
			},
			"Duplicate index name: lsi": func(in *dynamodb.CreateTableInput) { in.GlobalSecondaryIndexes[0].IndexName = aws.String("lsi") },
			"ProvisionedThroughput should not be specified for index: gsi when BillingMode is PAY_PER_REQUEST": func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes[0].ProvisionedThroughput = unitsOf(1, 1)
			},
			"ProvisionedThroughput is not specified for index: gsi": func(in *dynamodb.CreateTableInput) {
				in.BillingMode, in.ProvisionedThroughput = "PROVISIONED", unitsOf(1, 1)
			},
			"Member must have value greater than or equal to 1": func(in *dynamodb.CreateTableInput) {
				in.BillingMode, in.ProvisionedThroughput = "PROVISIONED", unitsOf(1, 1)
				in.GlobalSecondaryIndexes[0].ProvisionedThroughput = unitsOf(1, 0)
			},
			"Some AttributeDefinitions are not used": func(in *dynamodb.CreateTableInput) {
				_, more := schema("more:S")
				in.AttributeDefinitions = append(in.AttributeDefinitions, more...)
			},
			"keySchema.1.member.keyType' failed to satisfy constraint: Member must satisfy enum value set: [HASH, RANGE]": func(in *dynamodb.CreateTableInput) {
				in.KeySchema[0].KeyType = "DOG"
			},
			"Attribute Name is duplicated: a": func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions = append(in.AttributeDefinitions, in.AttributeDefinitions[0])
			},
			"GlobalSecondaryIndex count exceeds the per-table limit of 20": func(in *dynamodb.CreateTableInput) {
				ix := in.GlobalSecondaryIndexes[0]
				for i := range 20 {
					ix.IndexName = aws.String(fmt.Sprint("more", i))
					in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, ix)
				}
			},
			"Number of LocalSecondaryIndexes exceeds per-table limit of 5": func(in *dynamodb.CreateTableInput) {
				ix := in.LocalSecondaryIndexes[0]
				for i := range 5 {
					ix.IndexName = aws.String(fmt.Sprint("more", i))
					in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, ix)
				}
			},
		} {
			x.refused(x.createIndexed(change), invalid, text)
		}
	}},
	{name: "index/attributes that it does not project", run: func(x *exam) { // nubo-db/dynamodb-conformance, error-messages/partiqlIndexQualifier.test.ts
		for _, p := range []ddbtypes.Projection{{ProjectionType: "KEYS_ONLY"}, {ProjectionType: "INCLUDE", NonKeyAttributes: []string{"v"}}} {
			x.useStrings(p)
			x.fill(m{"id": "a", "pos": "1", "owner": "me", "rank": "1", "v": 1, "w": m{"x": 1}})
			for _, path := range []string{"w", "w.x", "pos, w"} {
				_, err := x.scanned(func(in *dynamodb.ScanInput) { in.IndexName, in.ProjectionExpression = aws.String("gsi"), &path })
				x.refused(err, invalid, "One or more parameter values were invalid: Global secondary index gsi does not project [w]")
				_, err = x.owned(func(in *dynamodb.QueryInput) { in.IndexName, in.ProjectionExpression = aws.String("gsi"), &path })
				x.refused(err, invalid, "Global secondary index gsi does not project [w]")
			}
			out := suite.Get(x.owned(func(in *dynamodb.QueryInput) {
				in.IndexName, in.ProjectionExpression = aws.String("gsi"), aws.String("id, pos, #owner, #rank")
				in.ExpressionAttributeNames["#rank"] = "rank"
			}))
			x.list("keys", out.Items, m{"id": "a", "pos": "1", "owner": "me", "rank": "1"})
		}
		out := suite.Get(x.owned(func(in *dynamodb.QueryInput) {
			in.IndexName, in.ProjectionExpression = aws.String("gsi"), aws.String("v")
		}))
		x.list("included", out.Items, m{"v": 1})
	}},
}

// architect/dynalite test/getItem.js and test/scan.js: should return ValidationException for non-scalar key access, and for
// non-scalar index access; scylladb/scylladb test/alternator/test_gsi.py, test_gsi_wrong_type_attribute_update_nested.
var nestedKeyCases = []testCase{
	{name: "key/no paths into it", run: func(x *exam) {
		x.useStrings(everything)
		x.fill(m{"id": "a", "pos": "1", "owner": "me", "rank": "1"})
		key := m{"id": "a", "pos": "1"}
		for attribute, kind := range map[string]string{"id": "Key", "pos": "Key", "owner": "IndexKey", "rank": "IndexKey"} {
			for _, path := range []string{"#k.b.c", "#k[0]"} {
				text := "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: " + kind + ": " + attribute
				names := map[string]string{"#k": attribute}
				_, err := x.client().GetItem(x.ctx, &dynamodb.GetItemInput{TableName: &x.table, Key: attributes(key), ProjectionExpression: &path, ExpressionAttributeNames: names})
				x.refused(err, invalid, text)
				filter := "attribute_exists(" + path + ")"
				_, err = x.scanned(func(in *dynamodb.ScanInput) { in.FilterExpression, in.ExpressionAttributeNames = &filter, names })
				x.refused(err, invalid, text)
				_, err = x.scanned(func(in *dynamodb.ScanInput) { in.ProjectionExpression, in.ExpressionAttributeNames = &path, names })
				x.refused(err, invalid, text)
				x.refused(x.update(key, args{update: "SET v = :v", condition: filter, names: names, values: m{":v": 1}}).err, invalid, text)
				x.refused(x.put(m{"id": "a", "pos": "1"}, args{condition: "NOT " + filter, names: names}).err, invalid, text)
				x.refused(x.remove(key, args{condition: "NOT " + filter, names: names}).err, invalid, text)
				x.refused(x.update(key, args{update: "SET v = if_not_exists(" + path + ", :v)", names: names, values: m{":v": 1}}).err, invalid, text)
				x.refused(x.update(key, args{update: "SET " + path + " = :v", names: names, values: m{":v": 1}}).err, invalid)
			}
		}
		x.stored(key, m{"id": "a", "pos": "1", "owner": "me", "rank": "1"})
	}},
}

// architect/dynalite test/query.js and test/scan.js: should return ValidationException for ExclusiveStartKey ...
var startKeyCases = []testCase{
	{name: "start key/of a query refused", run: func(x *exam) {
		x.useStrings(everything)
		for _, c := range []struct {
			index, condition string
			start            m
			text             string
		}{
			{"", "id = :a", m{"id": "b", "pos": "a"}, "The provided starting key is outside query boundaries based on provided conditions"}, // ... with incorrect hash key
			{"", "id = :a AND pos > :a", m{"id": "a", "pos": "a"}, "The provided starting key does not match the range key predicate"},      // ... with non-matching range key
			{"", "id = :a AND begins_with(pos, :a)", m{"id": "a", "pos": "b"}, "The provided starting key does not match the range key predicate"},
			{"", "id = :a AND pos <= :a", m{"id": "b", "pos": "a"}, "The query can return at most one row and cannot be restarted"}, // ... with matching range but non-matching hash key
			{"", "id = :a", m{"id": "a"}, "The provided starting key is invalid"},
			{"", "id = :a", m{"id": "a", "pos": 1}, "The provided starting key is invalid"},
			{"", "id = :a", m{"id": "a", "pos": ""}, "The provided starting key is invalid"},
			{"", "id = :a", m{"id": "a", "pos": "a", "rank": "a"}, "The provided starting key is invalid"},
			{"lsi", "id = :a AND #rank > :a", m{"id": "a", "pos": "a", "rank": "a"}, "The provided starting key does not match the range key predicate"}, // ... with local index and not matching predicate
			{"lsi", "id = :a", m{"id": "b", "pos": "a", "rank": "a"}, "The provided starting key is outside query boundaries based on provided conditions"},
			{"gsi", "#owner = :a", m{"id": "a", "pos": "a", "owner": "b", "rank": "a"}, "The provided starting key is outside query boundaries based on provided conditions"},
			{"gsi", "#owner = :a", m{"owner": "a"}, "The provided starting key is invalid"},
			{"gsi", "#owner = :a", m{"id": "a", "pos": "a", "owner": "a", "rank": ""}, "The provided starting key is invalid"},
			{"gsi", "#owner = :a", m{"id": "a", "pos": "a", "owner": "a", "rank": strings.Repeat("r", 1025)}, "The provided starting key is invalid"},
		} {
			in := &dynamodb.QueryInput{TableName: &x.table, IndexName: optional(c.index), KeyConditionExpression: &c.condition, ExclusiveStartKey: attributes(c.start), ExpressionAttributeValues: attributes(m{":a": "a"})}
			in.ExpressionAttributeNames = used(map[string]string{"#rank": "rank", "#owner": "owner"}, c.condition)
			_, err := x.client().Query(x.ctx, in)
			x.refused(err, invalid, c.text)
		}
	}},
	// nubo-db/dynamodb-conformance, query/gsiHashOnlyPagination.test.ts; architect/dynalite, test/query.js, "if global hash in
	// ExclusiveStartKey but outside range".
	{name: "start key/without a sort key", run: func(x *exam) {
		in := &dynamodb.CreateTableInput{}
		in.KeySchema, in.AttributeDefinitions = schema("id:S")
		addGlobal(in, "gsi", everything, "owner:S")
		x.create(in)
		const n = 5
		for i := range n {
			x.fill(m{"id": fmt.Sprint(i), "owner": "me"})
		}
		x.fill(m{"id": "other", "owner": "you"})
		for _, forward := range []bool{true, false} {
			seen := map[string]bool{}
			query := &dynamodb.QueryInput{TableName: &x.table, IndexName: aws.String("gsi"), KeyConditionExpression: aws.String("#o = :a"), Limit: aws.Int32(2), ScanIndexForward: &forward}
			query.ExpressionAttributeNames, query.ExpressionAttributeValues = map[string]string{"#o": "owner"}, attributes(m{":a": "me"})
			for pages := dynamodb.NewQueryPaginator(x.client(), query); pages.HasMorePages(); {
				for _, i := range suite.Get(pages.NextPage(x.ctx)).Items {
					if id := show(i["id"]); seen[id] {
						x.fatalf("%s is on two pages", id)
					} else {
						seen[id] = true
					}
				}
			}
			equal(x, "items on all pages", len(seen), n)
		}
		seen := 0
		for pages := dynamodb.NewScanPaginator(x.client(), &dynamodb.ScanInput{TableName: &x.table, IndexName: aws.String("gsi"), Limit: aws.Int32(2)}); pages.HasMorePages(); {
			seen += len(suite.Get(pages.NextPage(x.ctx)).Items)
		}
		equal(x, "items of a scan", seen, n+1)
		for _, c := range []struct {
			index string
			start m
			text  string
		}{
			{"", m{"id": "b"}, "The provided starting key is outside query boundaries based on provided conditions"},
			{"", m{"id": "a", "owner": "me"}, "The provided starting key is invalid"},
			{"gsi", m{"id": "a", "owner": "you"}, "The provided starting key is outside query boundaries based on provided conditions"},
			{"gsi", m{"owner": "a"}, "The provided starting key is invalid"},
		} {
			condition := map[string]string{"": "id = :a", "gsi": "#o = :a"}[c.index]
			_, err := x.client().Query(x.ctx, &dynamodb.QueryInput{
				TableName: &x.table, IndexName: optional(c.index), KeyConditionExpression: &condition, ExclusiveStartKey: attributes(c.start),
				ExpressionAttributeNames: used(map[string]string{"#o": "owner"}, condition), ExpressionAttributeValues: attributes(m{":a": "a"}),
			})
			x.refused(err, invalid, c.text)
		}
		out := suite.Get(x.client().Query(x.ctx, &dynamodb.QueryInput{
			TableName: &x.table, KeyConditionExpression: aws.String("id = :a"), ExclusiveStartKey: attributes(m{"id": "1"}), ExpressionAttributeValues: attributes(m{":a": "1"}),
		}))
		equal(x, "items behind the only one", out.Count, 0)
	}},
	{name: "start key/of another segment", run: func(x *exam) { // ... if querying with ExclusiveStartKey not in Segment
		x.use("id:S")
		for i := range 20 {
			x.fill(m{"id": fmt.Sprint(i)})
		}
		for segment := range int32(2) {
			out, err := x.scanned(func(in *dynamodb.ScanInput) { in.Segment, in.TotalSegments = &segment, aws.Int32(2) })
			x.ok(err)
			if len(out.Items) == 0 {
				x.fatalf("segment %d of 20 items is empty", segment)
			}
			start := item{"id": out.Items[0]["id"]}
			_, err = x.scanned(func(in *dynamodb.ScanInput) {
				in.Segment, in.TotalSegments, in.ExclusiveStartKey = aws.Int32(1-segment), aws.Int32(2), start
			})
			x.refused(err, invalid, fmt.Sprintf("The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: 2 Segment: %d", 1-segment))
			rest := suite.Get(x.scanned(func(in *dynamodb.ScanInput) {
				in.Segment, in.TotalSegments, in.ExclusiveStartKey = &segment, aws.Int32(2), start
			}))
			equal(x, "the rest", len(rest.Items), len(out.Items)-1)
		}
	}},
	{name: "start key/of a scan refused", keys: "id:S pos:N", run: func(x *exam) {
		for _, start := range []m{{"id": "a"}, {"id": "a", "pos": "1"}, {"id": "", "pos": 1}, {"id": "a", "pos": 1, "v": 1}} {
			_, err := x.scanned(func(in *dynamodb.ScanInput) { in.ExclusiveStartKey = attributes(start) })
			x.refused(err, invalid, "The provided starting key is invalid")
		}
	}},
}
