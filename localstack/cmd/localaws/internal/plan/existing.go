package plan

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// compare writes a line if a table that exists has other keys, indexes or another stream than the plan's.
func (t Table) compare(ctx context.Context, d *dynamodb.Client, log io.Writer) error {
	out, err := d.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: t.Create.TableName})
	if err != nil {
		return err
	}
	has, want := []string{keys("", out.Table.KeySchema), stream(out.Table.StreamSpecification)}, []string{keys("", t.Create.KeySchema), stream(t.Create.StreamSpecification)}
	for _, i := range out.Table.GlobalSecondaryIndexes {
		has = append(has, keys(aws.ToString(i.IndexName), i.KeySchema))
	}
	for _, i := range out.Table.LocalSecondaryIndexes {
		has = append(has, keys(aws.ToString(i.IndexName), i.KeySchema))
	}
	for _, i := range t.Create.GlobalSecondaryIndexes {
		want = append(want, keys(aws.ToString(i.IndexName), i.KeySchema))
	}
	for _, i := range t.Create.LocalSecondaryIndexes {
		want = append(want, keys(aws.ToString(i.IndexName), i.KeySchema))
	}
	slices.Sort(has)
	slices.Sort(want)
	if !slices.Equal(has, want) {
		_, err = fmt.Fprintf(log, "localaws keeps the table %s, which differs from the file: it has%s, the file has%s. Delete the table to create it again\n",
			*t.Create.TableName, strings.Join(has, ","), strings.Join(want, ","))
	}
	return err
}

func keys(index string, schema []ddbtypes.KeySchemaElement) string {
	text := " key"
	if index != "" {
		text = " index " + index
	}
	for _, k := range schema {
		text += " " + aws.ToString(k.AttributeName)
	}
	return text
}

func stream(s *ddbtypes.StreamSpecification) string {
	if s == nil || s.StreamEnabled != nil && !*s.StreamEnabled {
		return " no stream"
	}
	return " stream " + string(s.StreamViewType)
}
