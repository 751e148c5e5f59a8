package doctor

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/must"
)

// What a deployment does not have is not looked at.
func TestNothingToLookAt(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.deployment = Deployment{}
	for _, f := range a.all() {
		t.Error(f)
	}
}

func (a *account) setTTL(on bool, attribute string) {
	must.Get(a.stack.DynamoDB.UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("dedup"), TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{Enabled: &on, AttributeName: &attribute},
	}))(a)
}

// A table that is missing is a FAIL, and what cannot be looked at for that is unknown. The fixes one after the other make a table that
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
			want = Unknown
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

// A check whose call is denied is unknown and names the action.
func TestTableDenied(t *testing.T) {
	t.Parallel()
	for op, ids := range map[string][]string{
		"DescribeTable": {"T1", "T4", "T5", "I2"}, "DescribeTimeToLive": {"T2"}, "DescribeContinuousBackups": {"T3"},
	} {
		a := healthy(t, "orders")
		a.dynamodb.deny(op)
		for _, id := range ids {
			a.says(id, Unknown, "dynamodb:"+op+" is denied")
		}
	}
}

// Without a client there is nothing to be seen.
func TestNoClients(t *testing.T) {
	t.Parallel()
	d := Deployment{QueueURL: "https://sqs.us-east-1.amazonaws.com/000000000000/orders", Table: "dedup", Role: roleARN, Probe: true}
	for _, f := range Examine(context.Background(), Clients{}, d) {
		if f.Verdict != Unknown && (f.Verdict != Skip || f.ID != "I3") {
			t.Error(f)
		}
	}
}

// docs/operating.md says of each check what it is about.
func TestDocumentedChecks(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("../../../../docs/operating.md"))(t)
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

// odd is a deployment in which one check alone says something else.
type odd struct {
	name    string
	change  func(a *account)
	id      string
	verdict Verdict
	says    string
	fix     string // how it begins, where there is one
	mends   bool   // the fix, pasted into a shell, makes all checks ok
}

func described(change func(*ddbtypes.TableDescription)) func(*account) {
	return func(a *account) {
		alter(a.dynamodb, func(o *dynamodb.DescribeTableOutput) { change(o.Table) })
	}
}

func ttlStatus(status ddbtypes.TimeToLiveStatus) func(*account) {
	return func(a *account) {
		alter(a.dynamodb, func(o *dynamodb.DescribeTimeToLiveOutput) { o.TimeToLiveDescription.TimeToLiveStatus = status })
	}
}

func called(arn string, err error) func(*account) {
	return func(a *account) {
		answer(a.sts, func(*sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
			return &sts.GetCallerIdentityOutput{Arn: &arn}, err
		})
	}
}

func ofRole(arn string) func(*account) { return func(a *account) { a.deployment.Role = arn } }

var strongReplicas = described(func(d *ddbtypes.TableDescription) {
	d.Replicas = []ddbtypes.ReplicaDescription{{RegionName: aws.String("us-east-1")}, {RegionName: aws.String("eu-west-1")}}
	d.MultiRegionConsistency = ddbtypes.MultiRegionConsistencyStrong
})

// Of the table, which memdynamodb has no replicas and no states of, of the caller and of the role.
var odds = []odd{
	{name: "no TTL", change: func(a *account) { a.setTTL(false, "expiration") }, id: "T2", verdict: Fail, says: "no TTL on expiration", mends: true},
	{name: "TTL on another attribute", change: func(a *account) {
		a.setTTL(false, "expiration")
		a.setTTL(true, "it's odd")
	}, id: "T2", verdict: Fail, says: "TTL on it's odd, not on expiration", mends: true},
	{name: "no recovery", change: func(a *account) {
		must.Get(a.stack.DynamoDB.UpdateContinuousBackups(context.Background(), &dynamodb.UpdateContinuousBackupsInput{
			TableName: aws.String("dedup"), PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(false)},
		}))(a)
	}, id: "T3", verdict: Warn, says: "point-in-time recovery", mends: true},
	{name: "no protection", change: func(a *account) {
		a.updateTable(&dynamodb.UpdateTableInput{DeletionProtectionEnabled: aws.Bool(false)})
	}, id: "T4", verdict: Warn, says: "deletion protection", mends: true},
	{name: "provisioned", change: func(a *account) {
		a.updateTable(&dynamodb.UpdateTableInput{
			BillingMode: ddbtypes.BillingModeProvisioned, ProvisionedThroughput: &ddbtypes.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(40)},
		})
	}, id: "T5", verdict: Warn, says: "40 write units: beyond about 20 events", mends: true},
	{name: "never billed on demand", change: described(func(d *ddbtypes.TableDescription) { d.BillingModeSummary = nil }), id: "T5", verdict: Warn},
	{name: "another key", change: described(func(d *ddbtypes.TableDescription) {
		d.AttributeDefinitions = []ddbtypes.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("sk"), AttributeType: "N"}}
		d.KeySchema = []ddbtypes.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}, {AttributeName: aws.String("sk"), KeyType: "RANGE"}}
	}), id: "T1", verdict: Fail, says: "pk (S, HASH) and sk (N, RANGE)"},
	{name: "replicas", change: described(func(d *ddbtypes.TableDescription) {
		d.Replicas = []ddbtypes.ReplicaDescription{{RegionName: aws.String("us-east-1")}, {RegionName: aws.String("eu-west-1")}}
	}), id: "T1", verdict: Warn, says: "replicas in eu-west-1:"},
	{name: "replicas with strong consistency", change: strongReplicas, id: "T1", verdict: OK},
	{name: "strong consistency has no TTL", change: all(strongReplicas, ttlStatus("DISABLED")), id: "T2", verdict: Fail, says: "multi-Region strong consistency", fix: "delete expired records by a job"},
	{name: "a replica that is itself", change: described(func(d *ddbtypes.TableDescription) {
		d.Replicas = []ddbtypes.ReplicaDescription{{RegionName: aws.String("us-east-1")}}
	}), id: "T1", verdict: OK},
	{name: "being updated", change: described(func(d *ddbtypes.TableDescription) { d.TableStatus = ddbtypes.TableStatusUpdating }), id: "T1", verdict: OK},
	{name: "being created", change: described(func(d *ddbtypes.TableDescription) { d.TableStatus = ddbtypes.TableStatusCreating }), id: "T1", verdict: Fail, says: "CREATING"},
	{name: "without its key", change: described(func(d *ddbtypes.TableDescription) {
		d.TableStatus = ddbtypes.TableStatusInaccessibleEncryptionCredentials
	}), id: "T1", verdict: Fail, says: "INACCESSIBLE"},
	{name: "TTL on", change: ttlStatus("ENABLED"), id: "T2", verdict: OK},
	{name: "TTL comes", change: ttlStatus("ENABLING"), id: "T2", verdict: OK},
	{name: "TTL goes", change: ttlStatus("DISABLING"), id: "T2", verdict: Fail, fix: "sleep 3600 && aws "},
	{name: "TTL off", change: ttlStatus("DISABLED"), id: "T2", verdict: Fail},
	{name: "TTL not described", change: func(a *account) { // DynamoDB has a description of a table without TTL too
		alter(a.dynamodb, func(o *dynamodb.DescribeTimeToLiveOutput) { o.TimeToLiveDescription = nil })
	}, id: "T2", verdict: Unknown},

	{name: "caller known", change: called(callerARN, nil), id: "I1", verdict: OK, says: callerARN},
	{name: "caller expired", change: called("", &smithy.GenericAPIError{Code: "ExpiredToken", Message: "The security token is expired"}), id: "I1", verdict: Fail, says: "ExpiredToken"},
	{name: "caller denied", change: called("", &smithy.GenericAPIError{Code: "AccessDenied", Message: "no"}), id: "I1", verdict: Unknown, says: "sts:GetCallerIdentity is denied"},
	{name: "caller fails", change: called("", errors.New("broken")), id: "I1", verdict: Unknown, says: "broken"},
	{name: "caller without ARN", change: called("", nil), id: "I1", verdict: Unknown, says: "no ARN"},

	{name: "denied by a statement", change: func(a *account) { a.role.denied = []string{"sqs:SendMessage"} }, id: "I2", verdict: Fail,
		says: "sqs:SendMessage on queue orders-dlq (denied by a statement)", fix: "an Allow does not outweigh a Deny"},
	{name: "conditions", change: func(a *account) { a.role.conditional = []string{"sqs:SendMessage"} }, id: "I2", verdict: Warn,
		says: "sqs:SendMessage on queue orders-dlq only if conditions on aws:SourceVpce allow it", fix: "see whether"},
	{name: "conditions and a lack", change: func(a *account) {
		a.role.conditional = []string{"sqs:SendMessage"}
		a.role.without("sqs:DeleteMessage")
	}, id: "I2", verdict: Fail, says: "; role billing has sqs:SendMessage on queue orders-dlq only if", fix: "aws iam put-role-policy"},
	{name: "two lacks", change: func(a *account) { a.role.without("sqs:DeleteMessage", "sqs:SendMessage") }, id: "I2", verdict: Fail,
		says: "lacks sqs:DeleteMessage on queue orders, sqs:SendMessage on queue orders-dlq,", fix: "aws iam put-role-policy"},
	{name: "nothing is said", change: func(a *account) { a.role.silent = true }, id: "I2", verdict: Unknown, says: "says nothing about sqs:ReceiveMessage on queue orders"},
	{name: "a simulation without end", change: func(a *account) {
		answer(a.iam, func(*iam.SimulatePrincipalPolicyInput) (*iam.SimulatePrincipalPolicyOutput, error) {
			return &iam.SimulatePrincipalPolicyOutput{IsTruncated: true, Marker: aws.String("again")}, nil
		})
	}, id: "I2", verdict: Unknown, says: "says nothing about"},
	{name: "no simulation", change: func(a *account) { a.iam.deny("SimulatePrincipalPolicy") }, id: "I2", verdict: Unknown, says: "iam:SimulatePrincipalPolicy is denied"},
	{name: "by --role", change: ofRole("arn:aws:iam::000000000000:role/billing"), id: "I2", verdict: OK, says: "role billing has the 9 actions"},
	{name: "no such role", change: ofRole("arn:aws:iam::000000000000:role/gone"), id: "I2", verdict: Fail, says: "does not exist", fix: "aws iam list-roles"},
	{name: "a session", change: ofRole("arn:aws:sts::000000000000:assumed-role/billing/one"), id: "I2", verdict: Unknown,
		says: "session of the role billing", fix: "aws iam get-role --role-name billing --query Role.Arn --output text"},
	{name: "no role", change: ofRole("billing"), id: "I2", verdict: Unknown, says: `"billing" is not the ARN of a role`},
	{name: "a user", change: ofRole("arn:aws:iam::000000000000:user/ann"), id: "I2", verdict: Unknown, says: "is not the ARN of a role"},
}

func TestOdd(t *testing.T) {
	t.Parallel()
	for _, test := range odds {
		run(t, test.id+"/"+test.name, func(a *account) {
			test.change(a)
			f := a.only(test.id, test.verdict)
			if !strings.Contains(f.Text, test.says) || !strings.HasPrefix(f.Fix, test.fix) {
				a.Errorf("%s, fix %q: want %q", f, f.Fix, test.says)
			}
			if other := strings.Contains(test.says, "odd"); test.mends && other != strings.Contains(f.Fix, " && sleep 3600 && ") {
				a.Errorf("fix %q", f.Fix) // DynamoDB refuses a second change of TTL within an hour
			}
			if test.mends {
				a.paste(f.Fix)
				a.well()
			}
		})
	}
}
