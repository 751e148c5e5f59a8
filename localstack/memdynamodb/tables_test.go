package memdynamodb_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

func TestTables(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	ctx := t.Context()
	createTable(t, c, "ledger", "account", "seq")
	_, err := c.CreateTable(ctx, &dynamodb.CreateTableInput{TableName: orders, BillingMode: "PAY_PER_REQUEST", AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}}, KeySchema: []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}}})
	if _, ok := errors.AsType[*ddbtypes.ResourceInUseException](err); !ok {
		t.Errorf("second CreateTable: %v", err)
	}
	putItem(t, c, "ledger", item{"account": str("x"), "seq": num("1")})
	out, err := c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("ledger")})
	if err != nil {
		t.Fatal(err)
	}
	if d := out.Table; d.TableStatus != "ACTIVE" || *d.ItemCount != 1 || *d.TableSizeBytes != 7+1+3+2 || len(d.KeySchema) != 2 || *d.TableArn != "arn:aws:dynamodb:us-east-1:000000000000:table/ledger" || d.BillingModeSummary.BillingMode != "PAY_PER_REQUEST" {
		t.Errorf("description %+v", d)
	}
	if err := dynamodb.NewTableExistsWaiter(c).Wait(ctx, &dynamodb.DescribeTableInput{TableName: orders}, time.Second); err != nil {
		t.Error(err)
	}
	list, err := c.ListTables(ctx, &dynamodb.ListTablesInput{Limit: aws.Int32(1)})
	if err != nil || cmp.Diff([]string{"ledger"}, list.TableNames) != "" || aws.ToString(list.LastEvaluatedTableName) != "ledger" {
		t.Errorf("ListTables: %+v, %v", list, err)
	}
	if _, err := c.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("ledger")}); err != nil {
		t.Fatal(err)
	}
	_, err = c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("ledger")})
	wantRefusal(t, "deleted", err, "ResourceNotFoundException: Requested resource not found: Table: ledger not found")
	_, err = c.CreateBackup(ctx, &dynamodb.CreateBackupInput{TableName: orders, BackupName: aws.String("one")})
	wantRefusal(t, "unknown operation", err, "UnknownOperationException: memdynamodb does not implement the operation CreateBackup")
}

func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := start(t)
		ctx := t.Context()
		now := time.Now()
		at := func(d time.Duration) ddbtypes.AttributeValue { return num(fmt.Sprint(now.Add(d).Unix())) }
		for id, v := range map[string]ddbtypes.AttributeValue{
			"past": at(-time.Second), "now": at(0), "future": at(time.Hour), "text": str("1"),
			"old": at(-5*365*24*time.Hour + time.Hour), "ancient": at(-5*365*24*time.Hour - time.Hour),
		} {
			putItem(t, c, "orders", item{"id": str(id), "expiration": v})
		}
		putItem(t, c, "orders", item{"id": str("none")})
		if n := srv.SweepTTL(); n != 0 {
			t.Errorf("%d items deleted without TTL", n)
		}
		set := func(enabled bool) error {
			_, err := c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: orders, TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String("expiration"), Enabled: &enabled}})
			return err
		}
		if err := set(true); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, "twice", set(true), "ValidationException: TimeToLive is already enabled")
		d, err := c.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: orders})
		if err != nil || d.TimeToLiveDescription.TimeToLiveStatus != "ENABLED" || aws.ToString(d.TimeToLiveDescription.AttributeName) != "expiration" {
			t.Errorf("%+v, %v", d, err)
		}
		if get(t, c, "past") == nil {
			t.Error("an expired item vanished without a sweep")
		}
		if n := srv.SweepTTL(); n != 2 || get(t, c, "past") != nil || get(t, c, "old") != nil {
			t.Errorf("%d items deleted, want past and old", n)
		}
		time.Sleep(2 * time.Hour)
		if n := srv.SweepTTL(); n != 2 || len(srv.Items("orders")) != 3 {
			t.Errorf("%d items deleted after two hours, want now and future; left %s", n, srv.Items("orders"))
		}
	})
}
