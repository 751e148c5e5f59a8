package memdynamodb_test

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	if err := indexed(t, c); err != nil {
		t.Fatal(err)
	}
	in := &dynamodb.ScanInput{TableName: aws.String("indexed"), IndexName: aws.String("by_y"), ProjectionExpression: aws.String("y, v")}
	_, err := c.Scan(t.Context(), in)
	wantRefusal(t, "not projected", err, "UnknownOperationException: memdynamodb does not implement attributes of the table fetched through a local secondary index")
	in.ProjectionExpression = aws.String("y, pos, id")
	if _, err := c.Scan(t.Context(), in); err != nil {
		t.Errorf("keys: %v", err)
	}
}

// A table's description has an ID like AWS's. A deleted table's has no schema.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	if err := indexed(t, c); err != nil {
		t.Fatal(err)
	}
	name := &dynamodb.DescribeTableInput{TableName: aws.String("indexed")}
	described, err := c.DescribeTable(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	id := *described.Table.TableId
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("ID %q, want a UUID", id)
	}
	out, err := c.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: name.TableName})
	if err != nil {
		t.Fatal(err)
	}
	d := out.TableDescription
	if d.TableStatus != "DELETING" || *d.TableName != "indexed" || *d.TableId != id || d.ProvisionedThroughput.NumberOfDecreasesToday == nil || d.BillingModeSummary == nil || d.DeletionProtectionEnabled == nil {
		t.Errorf("deleted: %+v", d)
	}
	if d.KeySchema != nil || d.AttributeDefinitions != nil || d.CreationDateTime != nil || d.GlobalSecondaryIndexes != nil || d.LocalSecondaryIndexes != nil {
		t.Errorf("deleted, with a schema: %+v", d)
	}
}

// What can be restored begins when recovery was enabled, and later with the period.
func TestTimesOfRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t)
		ctx := t.Context()
		enabled := time.Now()
		in := &dynamodb.UpdateContinuousBackupsInput{TableName: orders, PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true), RecoveryPeriodInDays: aws.Int32(2)}}
		if _, err := c.UpdateContinuousBackups(ctx, in); err != nil {
			t.Fatal(err)
		}
		within := func(earliest, latest time.Time) {
			t.Helper()
			out, err := c.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: orders})
			if err != nil {
				t.Fatal(err)
			}
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
