package ddbtest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

func units(c *ddbtypes.ConsumedCapacity) float64 {
	if c == nil {
		return -1
	}
	return aws.ToFloat64(c.CapacityUnits)
}

// sized returns an item of exactly this many bytes.
func sized(id string, bytes int) m {
	return m{"id": id, "v": strings.Repeat("v", bytes-len("id")-len(id)-len("v"))}
}

const total = ddbtypes.ReturnConsumedCapacityTotal

func (x *exam) putUnits(i m) float64 {
	a := x.put(i, args{capacity: total})
	x.ok(a.err)
	return units(a.capacity)
}

func (x *exam) getUnits(key m, consistent bool) float64 {
	out := suite.Get(x.client().GetItem(x.ctx, &dynamodb.GetItemInput{TableName: &x.table, Key: attributes(key), ConsistentRead: &consistent, ReturnConsumedCapacity: total}))
	return units(out.ConsumedCapacity)
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
var capacityCases = []testCase{
	{name: "capacity/only where asked for", keys: "id:S", run: func(x *exam) {
		equal(x, "default", x.put(m{"id": "a"}).capacity, nil)
		equal(x, "NONE", x.put(m{"id": "a"}, args{capacity: "NONE"}).capacity, nil)
		c := x.put(m{"id": "a"}, args{capacity: total}).capacity
		equal(x, "table", aws.ToString(c.TableName), x.table)
		equal(x, "units", units(c), 1)
		c = x.put(m{"id": "a"}, args{capacity: "INDEXES"}).capacity
		equal(x, "of the table", aws.ToFloat64(c.Table.CapacityUnits), 1)
		x.refused(x.put(m{"id": "a"}, args{capacity: "DOG"}).err, invalid)
	}},
	{name: "capacity/a put by the larger item, in KB", keys: "id:S", run: func(x *exam) {
		equal(x, "1,024 bytes", x.putUnits(sized("a", 1024)), 1)
		equal(x, "1,025 bytes", x.putUnits(sized("a", 1025)), 2)
		equal(x, "a small one over 1,025 bytes", x.putUnits(m{"id": "a"}), 2)
		equal(x, "a small one over a small one", x.putUnits(m{"id": "a"}), 1)
		equal(x, "10 KB", x.putUnits(sized("b", 10<<10)), 10)
	}},
	{name: "capacity/an update by the larger item", keys: "id:S", run: func(x *exam) {
		x.fill(sized("a", 3<<10))
		update := func(u string, values m) float64 {
			a := x.update(m{"id": "a"}, args{update: u, values: values, capacity: total})
			x.ok(a.err)
			return units(a.capacity)
		}
		equal(x, "one attribute of 3 KB", update("SET w = :w", m{":w": 1}), 4) // 3 KB and the attribute
		equal(x, "removing most", update("REMOVE v", nil), 4)
		equal(x, "what is left", update("SET w = :w", m{":w": 2}), 1)
	}},
	{name: "capacity/a delete by the item deleted", keys: "id:S", run: func(x *exam) {
		x.fill(sized("a", 2500))
		for what, want := range map[string]float64{"an item": 3, "none": 1} {
			id := map[string]string{"an item": "a", "none": "none"}[what]
			a := x.remove(m{"id": id}, args{capacity: total})
			x.ok(a.err)
			equal(x, what, units(a.capacity), want)
		}
	}},
	{name: "capacity/a read by 4 KB, half if it may be stale", keys: "id:S", run: func(x *exam) {
		x.fill(sized("a", 4096), sized("b", 4097))
		equal(x, "4 KB", x.getUnits(m{"id": "a"}, true), 1)
		equal(x, "4 KB, stale", x.getUnits(m{"id": "a"}, false), 0.5)
		equal(x, "over 4 KB", x.getUnits(m{"id": "b"}, true), 2)
		equal(x, "over 4 KB, stale", x.getUnits(m{"id": "b"}, false), 1)
		equal(x, "none", x.getUnits(m{"id": "none"}, true), 1)
		equal(x, "none, stale", x.getUnits(m{"id": "none"}, false), 0.5)
	}},
	{name: "capacity/a query by the sum of its items", keys: "id:S pos:N", run: func(x *exam) {
		for i := range 3 {
			x.fill(m{"id": "p", "pos": i + 1, "v": strings.Repeat("v", 2000)})
		}
		read := func(consistent bool) float64 {
			out := suite.Get(x.find("id = :p", nil, func(in *dynamodb.QueryInput) { in.ConsistentRead, in.ReturnConsumedCapacity = &consistent, total }))
			return units(out.ConsumedCapacity)
		}
		equal(x, "6 KB", read(true), 2)
		equal(x, "6 KB, stale", read(false), 1)
	}},
	{name: "capacity/a scan by the sum of its items, before filter and projection", run: func(x *exam) { // nubo-db/dynamodb-conformance, scan/consumedCapacity.test.ts
		x.use("id:S")
		read := func(change ...func(*dynamodb.ScanInput)) float64 {
			out := suite.Get(x.scanned(func(in *dynamodb.ScanInput) {
				in.ReturnConsumedCapacity, in.ConsistentRead = total, aws.Bool(true)
				for _, f := range change {
					f(in)
				}
			}))
			return units(out.ConsumedCapacity)
		}
		stale := func(in *dynamodb.ScanInput) { in.ConsistentRead = nil }
		x.fill(sized("a", 100))
		equal(x, "one item", read(), 1)
		equal(x, "one item, stale", read(stale), 0.5)
		x.fill(sized("b", 4000), sized("c", 4000), sized("d", 4000))
		equal(x, "12,100 bytes", read(), 3)
		equal(x, "12,100 bytes, stale", read(stale), 1.5)
		equal(x, "filtered", read(func(in *dynamodb.ScanInput) { in.FilterExpression = aws.String("attribute_not_exists(id)") }), 3)
		equal(x, "projected", read(func(in *dynamodb.ScanInput) { in.ProjectionExpression = aws.String("id") }), 3)
		equal(x, "counted", read(func(in *dynamodb.ScanInput) { in.Select = "COUNT" }), 3)
	}},
	{name: "capacity/no kinds outside of transactions", run: func(x *exam) { // paritysuite/dynamodb-conformance issue 69
		x.use("id:S")
		for _, asked := range []ddbtypes.ReturnConsumedCapacity{total, "INDEXES"} {
			put := x.put(m{"id": "a"}, args{capacity: asked}).capacity
			get := suite.Get(x.client().GetItem(x.ctx, &dynamodb.GetItemInput{TableName: &x.table, Key: attributes(m{"id": "a"}), ReturnConsumedCapacity: asked}))
			scan := suite.Get(x.scanned(func(in *dynamodb.ScanInput) { in.ReturnConsumedCapacity = asked }))
			for _, c := range []*ddbtypes.ConsumedCapacity{put, get.ConsumedCapacity, scan.ConsumedCapacity} {
				equal(x, "kinds", c.ReadCapacityUnits == nil && c.WriteCapacityUnits == nil, true)
			}
		}
	}},
	{name: "capacity/of both kinds of indexes", run: func(x *exam) { // nubo-db/dynamodb-conformance, putItem/indexConsumedCapacity.test.ts
		x.useStrings(ddbtypes.Projection{ProjectionType: "INCLUDE", NonKeyAttributes: []string{"v"}})
		key := m{"id": "a", "pos": "1"}
		names := map[string]string{"#owner": "owner", "#rank": "rank"}
		for _, want := range []float64{1, 0} { // new in both, and as it was
			c := x.put(m{"id": "a", "pos": "1", "owner": "me", "rank": "1", "v": "1", "w": "1"}, args{capacity: "INDEXES"}).capacity
			equal(x, "a put, table", aws.ToFloat64(c.Table.CapacityUnits), 1)
			equal(x, "a put, global", aws.ToFloat64(c.GlobalSecondaryIndexes["gsi"].CapacityUnits), want)
			equal(x, "a put, local", aws.ToFloat64(c.LocalSecondaryIndexes["lsi"].CapacityUnits), want)
		}
		for _, c := range []struct {
			update                    string
			table, global, local, all float64
		}{
			{"SET w = :v", 1, 0, 0, 1}, {"SET v = :v", 1, 1, 1, 3}, {"SET #owner = :v", 1, 2, 0, 3}, {"SET #rank = :v", 1, 2, 2, 5}, {"REMOVE #owner", 1, 1, 0, 2}, {"REMOVE #rank", 1, 0, 1, 2},
		} {
			a := x.update(key, args{update: c.update, names: names, values: m{":v": "new"}, capacity: "INDEXES"})
			x.ok(a.err)
			equal(x, c.update+", table", aws.ToFloat64(a.capacity.Table.CapacityUnits), c.table)
			equal(x, c.update+", global", aws.ToFloat64(a.capacity.GlobalSecondaryIndexes["gsi"].CapacityUnits), c.global)
			equal(x, c.update+", local", aws.ToFloat64(a.capacity.LocalSecondaryIndexes["lsi"].CapacityUnits), c.local)
			equal(x, c.update+", total", units(a.capacity), c.all)
			equal(x, c.update+", only what it costs", len(a.capacity.GlobalSecondaryIndexes) == 1, c.global > 0)
		}
	}},
	{name: "capacity/a batch by its parts", keys: "id:S", run: func(x *exam) {
		out := suite.Get(x.client().BatchWriteItem(x.ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]ddbtypes.WriteRequest{x.table: {putRequest(sized("a", 1500)), putRequest(m{"id": "b"})}}, ReturnConsumedCapacity: total,
		}))
		equal(x, "writes", units(&out.ConsumedCapacity[0]), 3)
		k := keys(m{"id": "a"}, m{"id": "b"}, m{"id": "none"})
		got := suite.Get(x.client().BatchGetItem(x.ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]ddbtypes.KeysAndAttributes{x.table: k}, ReturnConsumedCapacity: total}))
		equal(x, "reads", units(&got.ConsumedCapacity[0]), 3)
	}},
	{name: "capacity/statements as calls", keys: "id:S", run: func(x *exam) {
		out := suite.Get(x.client().BatchExecuteStatement(x.ctx, &dynamodb.BatchExecuteStatementInput{
			Statements: []ddbtypes.BatchStatementRequest{x.statement(`INSERT INTO "T" VALUE {'id': 'a'}`), x.statement(`INSERT INTO "T" VALUE {'id': 'b', 'v': ?}`, strings.Repeat("v", 1500))}, ReturnConsumedCapacity: total,
		}))
		equal(x, "inserts", units(&out.ConsumedCapacity[0]), 3)
	}},
}

var transactCapacityCases = []testCase{
	{name: "capacity/a transaction twice its parts", keys: "id:S", run: func(x *exam) {
		out := suite.Get(x.client().TransactWriteItems(x.ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: []ddbtypes.TransactWriteItem{x.txPut(sized("a", 1500)), x.txPut(m{"id": "b"}), x.txCheck(m{"id": "c"}, always)}, ReturnConsumedCapacity: total,
		}))
		equal(x, "writes", units(&out.ConsumedCapacity[0]), 2*2+2*1+2*1)
		got := suite.Get(x.client().TransactGetItems(x.ctx, &dynamodb.TransactGetItemsInput{TransactItems: []ddbtypes.TransactGetItem{x.txGet(m{"id": "a"}, ""), x.txGet(m{"id": "none"}, "")}, ReturnConsumedCapacity: total}))
		equal(x, "reads", units(&got.ConsumedCapacity[0]), 2*1+2*1)
	}},
	{name: "capacity/a repeated token reads", keys: "id:S", run: func(x *exam) {
		in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("again"), TransactItems: []ddbtypes.TransactWriteItem{x.txPut(sized("a", 3000))}, ReturnConsumedCapacity: total}
		out := suite.Get(x.client().TransactWriteItems(x.ctx, in))
		equal(x, "the first time", units(&out.ConsumedCapacity[0]), 6)
		out = suite.Get(x.client().TransactWriteItems(x.ctx, in))
		equal(x, "the second time", units(&out.ConsumedCapacity[0]), 2)
		equal(x, "reads", aws.ToFloat64(out.ConsumedCapacity[0].ReadCapacityUnits), 2)
	}},
}
