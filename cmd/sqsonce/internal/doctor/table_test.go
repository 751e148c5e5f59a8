package doctor

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A deployment in which all is ok has a finding of each check that applies.
func TestWell(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.well()
	found := a.examine()
	for _, id := range []string{"T1", "T2", "T3", "T4", "T5", "I1", "I2", "C1", "C2"} {
		if found[id].ID == "" {
			t.Error("no finding", id)
		}
	}
}

// A fact that several checks need is asked for once.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.well()
	for operation, f := range map[string]*fake{"DescribeTable": a.dynamodb, "GetFunctionConfiguration": a.lambda} {
		if calls := slices.DeleteFunc(slices.Clone(f.calls), func(c string) bool { return c != operation }); len(calls) != 1 {
			t.Errorf("%s was called %d times", operation, len(calls))
		}
	}
}

// What a deployment does not have is not looked at.
func TestNothingToLookAt(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.deployment = Deployment{}
	for _, f := range a.all() {
		if f.ID != "I1" {
			t.Error(f)
		}
	}
}

func (a *account) setTTL(on bool, attribute string) {
	_, err := a.stack.DynamoDB.UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("dedup"), TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{Enabled: &on, AttributeName: &attribute},
	})
	a.must(err)
}

// Each defect of a table is found by its own check alone, and its fix mends it.
func TestTable(t *testing.T) {
	t.Parallel()
	ctx, dedup := context.Background(), aws.String("dedup")
	for name, test := range map[string]struct {
		breaks  func(a *account)
		id      string
		verdict Verdict
		says    string
	}{
		"no TTL": {func(a *account) { a.setTTL(false, "expiration") }, "T2", Fail, "no TTL on expiration"},
		"TTL on another attribute": {func(a *account) {
			a.setTTL(false, "expiration")
			a.setTTL(true, "it's odd")
		}, "T2", Fail, "TTL on it's odd, not on expiration"},
		"no recovery": {func(a *account) {
			_, err := a.stack.DynamoDB.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
				TableName: dedup, PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(false)},
			})
			a.must(err)
		}, "T3", Warn, "point-in-time recovery"},
		"no protection": {func(a *account) {
			_, err := a.stack.DynamoDB.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: dedup, DeletionProtectionEnabled: aws.Bool(false)})
			a.must(err)
		}, "T4", Warn, "deletion protection"},
		"provisioned": {func(a *account) {
			_, err := a.stack.DynamoDB.UpdateTable(ctx, &dynamodb.UpdateTableInput{
				TableName: dedup, BillingMode: ddbtypes.BillingModeProvisioned,
				ProvisionedThroughput: &ddbtypes.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(40)},
			})
			a.must(err)
		}, "T5", Warn, "40 write units: beyond about 20 events"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := healthy(t, "orders")
			test.breaks(a)
			f := a.only(test.id, test.verdict)
			if !strings.Contains(f.Text, test.says) || !strings.Contains(f.Text, "dedup") {
				t.Errorf("%s: want %q", f, test.says)
			}
			if other := strings.Contains(test.says, "odd"); other != strings.Contains(f.Fix, " && sleep 3600 && ") {
				t.Errorf("fix %q", f.Fix) // DynamoDB refuses a second change of TTL within an hour
			}
			a.paste(f.Fix)
			a.well()
		})
	}
}

// A table that is missing is a FAIL, and what cannot be looked at for that is a skip. The fixes one after the other make a table that
// is right.
func TestMissingTable(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.deployment.Table = "lost"
	for _, f := range a.all() {
		want := OK
		switch {
		case f.ID == "T1":
			want = Fail
		case f.ID[0] == 'T' || f.ID == "I2":
			want = Skip
		}
		if f.Verdict != want {
			t.Errorf("%s: want %s", f, want)
		}
	}
	for range 5 { // T1, then each of the others but T5, and I2
		for _, f := range a.all() {
			if f.Fix != "" {
				a.paste(f.Fix)
				break
			}
		}
	}
	a.well()
}

func TestOtherKey(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	alter(a.dynamodb, func(o *dynamodb.DescribeTableOutput) {
		o.Table.AttributeDefinitions = []ddbtypes.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("sk"), AttributeType: "N"}}
		o.Table.KeySchema = []ddbtypes.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}, {AttributeName: aws.String("sk"), KeyType: "RANGE"}}
	})
	if f := a.only("T1", Fail); !strings.Contains(f.Text, "pk (S, HASH) and sk (N, RANGE)") {
		t.Error(f)
	}
}

// What memdynamodb has no tables for: replicas, a table that takes no requests, TTL that is being changed.
func TestTableDescription(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*ddbtypes.TableDescription)
		verdict Verdict
		says    string
	}{
		"replicas": {func(d *ddbtypes.TableDescription) {
			d.Replicas = []ddbtypes.ReplicaDescription{{RegionName: aws.String("us-east-1")}, {RegionName: aws.String("eu-west-1")}}
		}, Warn, "replicas in eu-west-1:"},
		"itself only": {func(d *ddbtypes.TableDescription) {
			d.Replicas = []ddbtypes.ReplicaDescription{{RegionName: aws.String("us-east-1")}}
		}, OK, ""},
		"being updated": {func(d *ddbtypes.TableDescription) { d.TableStatus = ddbtypes.TableStatusUpdating }, OK, ""},
		"being created": {func(d *ddbtypes.TableDescription) { d.TableStatus = ddbtypes.TableStatusCreating }, Fail, "CREATING"},
		"without its key": {func(d *ddbtypes.TableDescription) {
			d.TableStatus = ddbtypes.TableStatusInaccessibleEncryptionCredentials
		}, Fail, "INACCESSIBLE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := healthy(t, "orders")
			alter(a.dynamodb, func(o *dynamodb.DescribeTableOutput) { test.change(o.Table) })
			if f := a.only("T1", test.verdict); !strings.Contains(f.Text, test.says) {
				t.Errorf("%s: want %q", f, test.says)
			}
		})
	}
}

func TestTTLStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[ddbtypes.TimeToLiveStatus]Verdict{"ENABLED": OK, "ENABLING": OK, "DISABLING": Fail, "DISABLED": Fail} {
		a := healthy(t, "orders")
		alter(a.dynamodb, func(o *dynamodb.DescribeTimeToLiveOutput) { o.TimeToLiveDescription.TimeToLiveStatus = status })
		if f := a.only("T2", want); status == "DISABLING" && !strings.HasPrefix(f.Fix, "sleep 3600 && aws ") {
			t.Errorf("%s: %s", f, f.Fix)
		}
	}
	a := healthy(t, "orders")
	alter(a.dynamodb, func(o *dynamodb.DescribeTimeToLiveOutput) { o.TimeToLiveDescription = nil })
	a.only("T2", Skip) // DynamoDB has a description of a table without TTL too
}

// A table that was never billed on demand has no summary of its billing.
func TestCapacityWithoutSummary(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	alter(a.dynamodb, func(o *dynamodb.DescribeTableOutput) { o.Table.BillingModeSummary = nil })
	a.only("T5", Warn)
}

// A check whose call is denied is a skip that names the action.
func TestTableDenied(t *testing.T) {
	t.Parallel()
	for op, ids := range map[string][]string{
		"DescribeTable": {"T1", "T4", "T5", "I2"}, "DescribeTimeToLive": {"T2"}, "DescribeContinuousBackups": {"T3"},
	} {
		a := healthy(t, "orders")
		a.dynamodb.deny(op)
		for _, id := range ids {
			if f := a.of(id); f.Verdict != Skip || !strings.Contains(f.Text, "dynamodb:"+op+" is denied") {
				t.Errorf("%s is denied: %s", op, f)
			}
		}
	}
}

// Without a client there is nothing to be seen.
func TestNoClients(t *testing.T) {
	t.Parallel()
	d := Deployment{QueueURL: "https://sqs.us-east-1.amazonaws.com/000000000000/orders", Table: "dedup", Role: roleARN, Probe: true}
	for _, f := range Examine(context.Background(), Clients{}, d) {
		if f.Verdict != Skip {
			t.Error(f)
		}
	}
}

// docs/operating.md says of each check what it is about.
func TestDocumentedChecks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, c := range checks() {
		want = append(want, c.ids...)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z][0-9]) \|`).FindAllSubmatch(text, -1) {
		got = append(got, string(row[1]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has %v, the checks are %v", got, want)
	}
}
