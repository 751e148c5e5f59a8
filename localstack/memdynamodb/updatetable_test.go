package memdynamodb_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/must"
)

// indexed creates the table "indexed" with the key id and pos, a global index by_x and a local index by_y.
func indexed(t *testing.T, c *dynamodb.Client, change ...func(*dynamodb.CreateTableInput)) error {
	t.Helper()
	element := func(name string, role ddbtypes.KeyType) ddbtypes.KeySchemaElement {
		return ddbtypes.KeySchemaElement{AttributeName: &name, KeyType: role}
	}
	in := &dynamodb.CreateTableInput{
		TableName: aws.String("indexed"), BillingMode: ddbtypes.BillingModePayPerRequest,
		KeySchema:              []ddbtypes.KeySchemaElement{element("id", "HASH"), element("pos", "RANGE")},
		GlobalSecondaryIndexes: []ddbtypes.GlobalSecondaryIndex{{IndexName: aws.String("by_x"), KeySchema: []ddbtypes.KeySchemaElement{element("x", "HASH")}, Projection: &ddbtypes.Projection{ProjectionType: "KEYS_ONLY"}}},
		LocalSecondaryIndexes:  []ddbtypes.LocalSecondaryIndex{{IndexName: aws.String("by_y"), KeySchema: []ddbtypes.KeySchemaElement{element("id", "HASH"), element("y", "RANGE")}, Projection: &ddbtypes.Projection{ProjectionType: "KEYS_ONLY"}}},
	}
	for _, name := range []string{"id", "pos", "x", "y"} {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddbtypes.AttributeDefinition{AttributeName: &name, AttributeType: "S"})
	}
	for _, f := range change {
		f(in)
	}
	_, err := c.CreateTable(t.Context(), in)
	return err
}

// What AWS has and the server has not is refused by name also where the member itself is known.
func TestRefusedByName(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for _, role := range []ddbtypes.KeyType{"HASH", "RANGE"} {
		err := indexed(t, c, func(in *dynamodb.CreateTableInput) {
			keys := &in.GlobalSecondaryIndexes[0].KeySchema
			*keys = append(*keys, ddbtypes.KeySchemaElement{AttributeName: aws.String("y"), KeyType: role}, ddbtypes.KeySchemaElement{AttributeName: aws.String("pos"), KeyType: "RANGE"})
		})
		wantRefusal(t, "several attributes", err, "UnknownOperationException: memdynamodb does not implement keys of several attributes (globalSecondaryIndexes.1.member.keySchema)")
	}
	err := indexed(t, c, func(in *dynamodb.CreateTableInput) {
		keys := &in.GlobalSecondaryIndexes[0].KeySchema
		*keys = append(*keys, ddbtypes.KeySchemaElement{AttributeName: aws.String("y"), KeyType: "HASH"})
	})
	wantRefusal(t, "two partition keys", err, "UnknownOperationException: memdynamodb does not implement keys of several attributes")
}

// AWS would read them from the table.
func TestAttributesBesideALocalIndex(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	must.Do(t, indexed(t, c))
	in := &dynamodb.ScanInput{TableName: aws.String("indexed"), IndexName: aws.String("by_y"), ProjectionExpression: aws.String("y, v")}
	_, err := c.Scan(t.Context(), in)
	wantRefusal(t, "not projected", err, "UnknownOperationException: memdynamodb does not implement attributes of the table fetched through a local secondary index")
	in.ProjectionExpression = aws.String("y, pos, id")
	if _, err := c.Scan(t.Context(), in); err != nil {
		t.Errorf("keys: %v", err)
	}
}

func TestLocalIndexesStay(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	must.Do(t, indexed(t, c))
	for want, u := range map[string]ddbtypes.GlobalSecondaryIndexUpdate{
		"Cannot delete an index that is not a GlobalSecondaryIndex: by_y": {Delete: &ddbtypes.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("by_y")}},
		"Cannot update an index that is not a GlobalSecondaryIndex: by_y": {Update: &ddbtypes.UpdateGlobalSecondaryIndexAction{IndexName: aws.String("by_y"), ProvisionedThroughput: &ddbtypes.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}}},
	} {
		_, err := c.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("indexed"), GlobalSecondaryIndexUpdates: []ddbtypes.GlobalSecondaryIndexUpdate{u}})
		wantRefusal(t, want, err, "ValidationException: "+want)
	}
}

// Decreases count by the day. What can be restored begins when recovery was enabled, and later with the period.
func TestTimesOfDescriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t)
		ctx := t.Context()
		units := func(n int64) *ddbtypes.ProvisionedThroughput {
			return &ddbtypes.ProvisionedThroughput{ReadCapacityUnits: &n, WriteCapacityUnits: &n}
		}
		set := func(in dynamodb.UpdateTableInput) {
			t.Helper()
			in.TableName = orders
			must.Get(c.UpdateTable(ctx, &in))(t)
		}
		decreases := func() int64 {
			out := must.Get(c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: orders}))(t)
			return *out.Table.ProvisionedThroughput.NumberOfDecreasesToday
		}
		set(dynamodb.UpdateTableInput{BillingMode: "PROVISIONED", ProvisionedThroughput: units(9)})
		set(dynamodb.UpdateTableInput{ProvisionedThroughput: units(8)})
		set(dynamodb.UpdateTableInput{ProvisionedThroughput: units(7)})
		if n := decreases(); n != 2 {
			t.Errorf("%d decreases, want 2", n)
		}
		time.Sleep(24 * time.Hour)
		if n := decreases(); n != 0 {
			t.Errorf("%d decreases on the next day", n)
		}
		set(dynamodb.UpdateTableInput{ProvisionedThroughput: units(6)})
		if n := decreases(); n != 1 {
			t.Errorf("%d decreases, want 1", n)
		}

		enabled := time.Now()
		in := &dynamodb.UpdateContinuousBackupsInput{TableName: orders, PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true), RecoveryPeriodInDays: aws.Int32(2)}}
		must.Get(c.UpdateContinuousBackups(ctx, in))(t)
		within := func(earliest, latest time.Time) {
			t.Helper()
			out := must.Get(c.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: orders}))(t)
			d := out.ContinuousBackupsDescription.PointInTimeRecoveryDescription
			if !d.EarliestRestorableDateTime.Equal(earliest) || !d.LatestRestorableDateTime.Equal(latest) {
				t.Errorf("from %s to %s, want from %s to %s", d.EarliestRestorableDateTime, d.LatestRestorableDateTime, earliest, latest)
			}
		}
		within(enabled, enabled)
		time.Sleep(time.Hour)
		within(enabled, enabled.Add(55*time.Minute))
		if _, err := c.UpdateContinuousBackups(ctx, in); err != nil { // again
			t.Fatal(err)
		}
		within(enabled, enabled.Add(55*time.Minute))
		time.Sleep(71 * time.Hour)
		within(enabled.Add(24*time.Hour), enabled.Add(72*time.Hour-5*time.Minute))
	})
}

// A key of KMS is taken as it is named: there is no KMS.
func TestKeyOfATable(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	const kms = "arn:aws:kms:us-east-1:000000000000:"
	for key, want := range map[string]string{"some": kms + "key/some", "alias/some": kms + "alias/some", kms + "key/other": kms + "key/other"} {
		in := &dynamodb.UpdateTableInput{TableName: orders, SSESpecification: &ddbtypes.SSESpecification{Enabled: aws.Bool(true), SSEType: "KMS", KMSMasterKeyId: &key}}
		out := must.Get(c.UpdateTable(t.Context(), in))(t)
		if d := out.TableDescription.SSEDescription; d.Status != "ENABLED" || *d.KMSMasterKeyArn != want {
			t.Errorf("%s: %+v", key, d)
		}
	}
}
