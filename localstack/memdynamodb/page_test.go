package memdynamodb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/internal/must"
)

func TestPageOfOneMegabyte(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for i := range 5 {
		putItem(t, c, "orders", item{"id": str(fmt.Sprint(i)), "v": str(strings.Repeat("v", 300<<10))})
	}
	n, pages := 0, 0
	in := &dynamodb.ScanInput{TableName: orders, Select: "COUNT"}
	for {
		out := must.Get(c.Scan(t.Context(), in))(t)
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
