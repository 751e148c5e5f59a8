package ddbtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// find runs a query with the key condition, in which :p is "p".
func (x *exam) find(condition string, values m, change ...func(*dynamodb.QueryInput)) (*dynamodb.QueryOutput, error) {
	if strings.Contains(condition, ":p") {
		values = merged(values, m{":p": "p"})
	}
	in := &dynamodb.QueryInput{TableName: &x.table, KeyConditionExpression: &condition, ExpressionAttributeValues: attributes(values)}
	for _, f := range change {
		f(in)
	}
	return x.client().Query(x.ctx, in)
}

func merged(a, b m) m {
	out := m{}
	for _, from := range []m{a, b} {
		for k, v := range from {
			out[k] = v
		}
	}
	return out
}

// at returns the sort keys of items, in their order.
func at(items []item) string {
	var all []string
	for _, i := range items {
		all = append(all, show(i["pos"]))
	}
	return strings.Join(all, " ")
}

// line puts items of partition "p" with these numbers as sort keys; v is the tens digit of each.
func (x *exam) line(numbers ...int) {
	for _, k := range numbers {
		x.fill(m{"id": "p", "pos": k, "v": k / 10})
	}
	x.fill(m{"id": "other", "pos": 1, "v": 0})
}

var queryCases = []testCase{
	{name: "query/sort key conditions, in order", keys: "id:S pos:N", run: func(x *exam) {
		x.line(30, 4, 100, -2, 21)
		for _, c := range []struct {
			condition string
			values    m
			want      string
		}{
			{"id = :p", nil, "-2 4 21 30 100"},
			{"id = :p AND pos = :a", m{":a": 21}, "21"},
			{"id = :p AND pos < :a", m{":a": 21}, "-2 4"},
			{"id = :p AND pos <= :a", m{":a": 21}, "-2 4 21"},
			{"id = :p AND pos > :a", m{":a": 21}, "30 100"},
			{"pos >= :a AND id = :p", m{":a": 21}, "21 30 100"},
			{"id = :p AND pos BETWEEN :a AND :b", m{":a": 4, ":b": 30}, "4 21 30"},
			{"(id = :p) AND (pos > :a)", m{":a": 21}, "30 100"},
			{"id = :p AND pos = :a", m{":a": 5}, ""},
		} {
			out := suite.Get(x.find(c.condition, c.values))
			equal(x, c.condition, at(out.Items), c.want)
			equal(x, "count", out.Count, int32(len(out.Items)))
		}
		out := suite.Get(x.find("id = :p", nil, func(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }))
		equal(x, "backwards", at(out.Items), "100 30 21 4 -2")
	}},
	{name: "query/strings sort by bytes, and begin", keys: "id:S pos:S", run: func(x *exam) {
		for _, s := range []string{"b", "a", "B", "é", "ab", "10", "9"} {
			x.fill(m{"id": "p", "pos": s})
		}
		out := suite.Get(x.find("id = :p", nil))
		equal(x, "order", at(out.Items), `"10" "9" "B" "a" "ab" "b" "é"`)
		out = suite.Get(x.find("id = :p AND begins_with(pos, :a)", m{":a": "a"}))
		equal(x, "begins_with", at(out.Items), `"a" "ab"`)
	}},
	{name: "query/pages", keys: "id:S pos:N", run: func(x *exam) {
		x.line(1, 2, 3, 4, 5)
		var got []string
		pages := dynamodb.NewQueryPaginator(x.client(), &dynamodb.QueryInput{
			TableName: &x.table, KeyConditionExpression: aws.String("id = :p"), ExpressionAttributeValues: attributes(m{":p": "p"}), Limit: aws.Int32(2),
		})
		for pages.HasMorePages() {
			out := suite.Get(pages.NextPage(x.ctx))
			got = append(got, at(out.Items))
		}
		equal(x, "pages", strings.Join(got, "|"), "1 2|3 4|5")
	}},
	{name: "query/the last key", keys: "id:S pos:N", run: func(x *exam) {
		x.line(1, 2)
		out := suite.Get(x.find("id = :p", nil, func(in *dynamodb.QueryInput) { in.Limit = aws.Int32(1) }))
		x.same("LastEvaluatedKey", out.LastEvaluatedKey, m{"id": "p", "pos": 1})
		out = suite.Get(x.find("id = :p", nil, func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = attributes(m{"id": "p", "pos": 1}) }))
		equal(x, "after it", at(out.Items), "2")
		x.same("LastEvaluatedKey at the end", out.LastEvaluatedKey, nil)
	}},
	{name: "query/filter after the limit", keys: "id:S pos:N", run: func(x *exam) {
		x.line(1, 11, 2, 12)
		filter := func(in *dynamodb.QueryInput) {
			in.FilterExpression = aws.String("v = :v")
			in.ExpressionAttributeValues[":v"] = value(1)
		}
		out := suite.Get(x.find("id = :p", nil, filter))
		equal(x, "items", at(out.Items), "11 12")
		equal(x, "counts", fmt.Sprint(out.Count, out.ScannedCount), "2 4")
		out = suite.Get(x.find("id = :p", nil, filter, func(in *dynamodb.QueryInput) { in.Limit = aws.Int32(2) }))
		equal(x, "items of the first two", at(out.Items), "")
		equal(x, "counts of the first two", fmt.Sprint(out.Count, out.ScannedCount), "0 2")
		x.same("LastEvaluatedKey", out.LastEvaluatedKey, m{"id": "p", "pos": 2})
	}},
	{name: "query/count and projection", keys: "id:S pos:N", run: func(x *exam) {
		x.line(1, 2)
		out := suite.Get(x.find("id = :p", nil, func(in *dynamodb.QueryInput) { in.Select = "COUNT" }))
		equal(x, "count", fmt.Sprint(out.Count, len(out.Items)), "2 0")
		out = suite.Get(x.find("id = :p", nil, func(in *dynamodb.QueryInput) { in.ProjectionExpression = aws.String("pos") }))
		x.list("projected", out.Items, m{"pos": 1}, m{"pos": 2})
	}},
	{name: "query/refused", keys: "id:S pos:N", run: func(x *exam) {
		for condition, values := range map[string]m{
			"pos = :a": {":a": 1}, "id > :p": {}, "id = :p OR pos = :a": {":a": 1}, "id <> :p": {}, "id = :p AND NOT pos = :a": {":a": 1}, "id = :p AND pos <> :a": {":a": 1}, "id = :p AND pos IN (:a)": {":a": 1},
			"id = :p AND v = :a": {":a": 1}, "id = :p AND pos = :a AND pos < :a": {":a": 1}, "id = :a": {":a": 1}, "id = :p AND pos = :a": {":a": "1"}, "id = :p AND contains(pos, :a)": {":a": 1}, "id = :p AND attribute_exists(pos)": {},
			"begins_with(id, :p)": {}, "id = :p AND begins_with(pos, :a)": {":a": 1}, "id = :p AND pos BETWEEN :a AND :b": {":a": 2, ":b": 1}, "id = :undefined": {}, "id = pos": {},
		} {
			_, err := x.find(condition, values)
			x.refusedAs(condition, err, invalid)
		}
		for what, change := range map[string]func(*dynamodb.QueryInput){
			"no condition":         func(in *dynamodb.QueryInput) { in.KeyConditionExpression, in.ExpressionAttributeValues = nil, nil },
			"a limit of none":      func(in *dynamodb.QueryInput) { in.Limit = aws.Int32(0) },
			"a filter on the key":  func(in *dynamodb.QueryInput) { in.FilterExpression = aws.String("pos = :p") },
			"an unknown index":     func(in *dynamodb.QueryInput) { in.IndexName = aws.String("none") },
			"a start key of other": func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = attributes(m{"id": "p"}) },
			"a projection of all": func(in *dynamodb.QueryInput) {
				in.ProjectionExpression, in.Select = aws.String("pos"), "ALL_ATTRIBUTES"
			},
		} {
			_, err := x.find("id = :p", nil, change)
			x.refusedAs(what, err, invalid)
		}
	}},
}

// Pages of 1 MB. The sizes are those of AWS: architect/dynalite, test/query.js and test/scan.js, "if just under limit" and "if just
// over limit". An item counts with the form that the store gives it, and a full page has a last key though nothing follows.
var pageCases = []testCase{
	{name: "page/just under 1 MB", keys: "a:S b:S", run: func(x *exam) { x.pageOf(43387, 25) }},
	{name: "page/just over 1 MB", keys: "a:S b:S", run: func(x *exam) { x.pageOf(43388, 24) }},
}

// pageOf puts 25 items of 43,372 bytes and a little. The last but one has an attribute of this many bytes.
func (x *exam) pageOf(last, want int) {
	for i := range 25 {
		n := 43372
		switch {
		case i == 23:
			n = last
		case i == 24:
			n = 44999
		}
		x.fill(m{"a": "0123456789", "b": fmt.Sprintf("%02d", i), "e": strings.Repeat("e", n)})
	}
	in := &dynamodb.QueryInput{TableName: &x.table, KeyConditionExpression: aws.String("a = :a"), ExpressionAttributeValues: attributes(m{":a": "0123456789"}), Select: "COUNT"}
	out := suite.Get(x.client().Query(x.ctx, in))
	equal(x, "queried", int(out.Count), want)
	equal(x, "a last key", out.LastEvaluatedKey != nil, true)
	scanned := suite.Get(x.scanned(func(in *dynamodb.ScanInput) { in.Select = "COUNT" }))
	equal(x, "scanned", int(scanned.Count), want)
	equal(x, "a last key", scanned.LastEvaluatedKey != nil, true)
}

// Empty keys: getmoto/moto issue 7062, and AWS's texts for writes. Select: nubo-db/dynamodb-conformance.
var refusedQueryCases = []testCase{
	{name: "query/empty keys refused", keys: "id:S pos:S", run: func(x *exam) {
		const empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: "
		_, err := x.find("id = :e", m{":e": ""})
		x.refused(err, invalid, empty+"id")
		for _, condition := range []string{"pos = :e", "pos < :e", "begins_with(pos, :e)", "pos BETWEEN :e AND :p"} {
			_, err := x.find("id = :p AND "+condition, m{":e": ""})
			x.refused(err, invalid, empty+"pos")
		}
	}},
	{name: "query/a count with a projection refused", keys: "id:S pos:S", run: func(x *exam) {
		const text = "Cannot specify the ProjectionExpression when choosing to get only the Count"
		_, err := x.find("id = :p", nil, func(in *dynamodb.QueryInput) { in.Select, in.ProjectionExpression = "COUNT", aws.String("pos") })
		x.refused(err, invalid, text)
		_, err = x.scanned(func(in *dynamodb.ScanInput) { in.Select, in.ProjectionExpression = "COUNT", aws.String("pos") })
		x.refused(err, invalid, text)
	}},
}

func (x *exam) scan(change ...func(*dynamodb.ScanInput)) []item {
	var all []item
	in := &dynamodb.ScanInput{TableName: &x.table}
	for _, f := range change {
		f(in)
	}
	pages := dynamodb.NewScanPaginator(x.client(), in)
	for pages.HasMorePages() {
		out := suite.Get(pages.NextPage(x.ctx))
		all = append(all, out.Items...)
	}
	slices.SortFunc(all, func(a, b item) int { return strings.Compare(showItem(a), showItem(b)) })
	return all
}

var scanCases = []testCase{
	{name: "scan/every item once, page by page", keys: "id:S", run: func(x *exam) {
		var want []m
		for i := range 9 {
			want = append(want, m{"id": fmt.Sprint(i)})
		}
		x.fill(want...)
		x.list("at once", x.scan(), want...)
		x.list("two at a time", x.scan(func(in *dynamodb.ScanInput) { in.Limit = aws.Int32(2) }), want...)
	}},
	{name: "scan/filter and projection", keys: "id:S pos:N", run: func(x *exam) {
		x.line(1, 11, 12)
		got := x.scan(func(in *dynamodb.ScanInput) {
			in.FilterExpression, in.ProjectionExpression = aws.String("pos > :a"), aws.String("pos")
			in.ExpressionAttributeValues = attributes(m{":a": 11})
		})
		x.list("items", got, m{"pos": 12})
	}},
	{name: "scan/segments", keys: "id:S", run: func(x *exam) {
		var want []m
		for i := range 9 {
			want = append(want, m{"id": fmt.Sprint(i)})
		}
		x.fill(want...)
		var got []item
		for segment := range int32(3) {
			got = append(got, x.scan(func(in *dynamodb.ScanInput) { in.Segment, in.TotalSegments = &segment, aws.Int32(3) })...)
		}
		slices.SortFunc(got, func(a, b item) int { return strings.Compare(showItem(a), showItem(b)) })
		x.list("of all segments", got, want...)
	}},
	{name: "scan/of an index, by its sort key within a partition", run: func(x *exam) {
		x.useIndexed(everything)
		for i, pos := range []int{3, 1, 4, 2} {
			x.fill(m{"id": fmt.Sprint(i), "owner": "me", "pos": pos}, m{"id": fmt.Sprint("y", i), "owner": "you", "pos": pos})
		}
		var start item
		got := map[string][]item{}
		for range 9 {
			out := suite.Get(x.scanned(func(in *dynamodb.ScanInput) {
				in.IndexName, in.Limit, in.ExclusiveStartKey = aws.String("by_owner"), aws.Int32(1), start
			}))
			for _, i := range out.Items {
				got[show(i["owner"])] = append(got[show(i["owner"])], i)
			}
			start = out.LastEvaluatedKey
		}
		for owner, items := range got {
			equal(x, owner, at(items), "1 2 3 4")
		}
		equal(x, "owners", len(got), 2)
	}},
	{name: "scan/refused", keys: "id:S", run: func(x *exam) {
		for what, in := range map[string]*dynamodb.ScanInput{
			"a bad filter":              {FilterExpression: aws.String("=")},
			"a segment beyond":          {Segment: aws.Int32(2), TotalSegments: aws.Int32(2)},
			"a segment of unknown many": {Segment: aws.Int32(0)},
			"a limit of none":           {Limit: aws.Int32(0)},
		} {
			in.TableName = &x.table
			_, err := x.client().Scan(x.ctx, in)
			x.refusedAs(what, err, invalid)
		}
		_, err := x.client().Scan(x.ctx, &dynamodb.ScanInput{TableName: aws.String(x.newName())})
		x.refused(err, notFound)
	}},
}
