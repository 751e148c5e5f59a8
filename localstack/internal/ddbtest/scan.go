package ddbtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func (x *exam) scan(change ...func(*dynamodb.ScanInput)) []item {
	var all []item
	in := &dynamodb.ScanInput{TableName: &x.table}
	for _, f := range change {
		f(in)
	}
	pages := dynamodb.NewScanPaginator(x.client(), in)
	for pages.HasMorePages() {
		out, err := pages.NextPage(x.ctx)
		x.ok(err)
		all = append(all, out.Items...)
	}
	slices.SortFunc(all, func(a, b item) int { return strings.Compare(showItem(a), showItem(b)) })
	return all
}

var scanCases = []testCase{
	{name: "scan/every item once, page by page", run: func(x *exam) {
		x.use("id:S")
		var want []m
		for i := range 9 {
			want = append(want, m{"id": fmt.Sprint(i)})
		}
		x.fill(want...)
		x.list("at once", x.scan(), want...)
		x.list("two at a time", x.scan(func(in *dynamodb.ScanInput) { in.Limit = aws.Int32(2) }), want...)
	}},
	{name: "scan/filter and projection", run: func(x *exam) {
		x.use("id:S", "pos:N")
		x.line(1, 11, 12)
		got := x.scan(func(in *dynamodb.ScanInput) {
			in.FilterExpression, in.ProjectionExpression = aws.String("pos > :a"), aws.String("pos")
			in.ExpressionAttributeValues = attributes(m{":a": 11})
		})
		x.list("items", got, m{"pos": 12})
	}},
	{name: "scan/segments", run: func(x *exam) {
		x.use("id:S")
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
	{name: "scan/refused", run: func(x *exam) {
		x.use("id:S")
		for what, in := range map[string]*dynamodb.ScanInput{
			"a bad filter":              {FilterExpression: aws.String("=")},
			"a segment beyond":          {Segment: aws.Int32(2), TotalSegments: aws.Int32(2)},
			"a segment of unknown many": {Segment: aws.Int32(0)},
			"a limit of none":           {Limit: aws.Int32(0)},
		} {
			in.TableName = &x.table
			if _, err := x.client().Scan(x.ctx, in); err == nil {
				x.fatalf("%s: got success, want %s", what, invalid)
			} else {
				x.refused(err, invalid)
			}
		}
		_, err := x.client().Scan(x.ctx, &dynamodb.ScanInput{TableName: aws.String(newName())})
		x.refused(err, notFound)
	}},
}
