package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/ddberror"
)

func tableChecks() []check {
	one := func(id string, look func(context.Context, *examination) Finding) check {
		return check{[]string{id}, func(ctx context.Context, e *examination) []Finding { return []Finding{look(ctx, e)} }}
	}
	return []check{
		one("T1", checkTable), one("T2", checkTTL), one("T3", checkBackups), one("T4", checkProtection), one("T5", checkCapacity),
		one("S1", checkStore),
	}
}

// checkStore is S1.
func checkStore(ctx context.Context, e *examination) Finding {
	r := report{id: "S1"}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := e.Store(ctx); errors.Is(err, sqsonce.ErrMisconfigured) {
		r.fail("docs/stores.md, Permissions: the text names the problem", "the store cannot be used: %v", err)
	} else {
		r.miss(err)
	}
	return r.finding("the store can be used")
}

// described is the description of the table.
func (e *examination) described(ctx context.Context) (*ddbtypes.TableDescription, error) {
	return e.table.get(ctx, func(ctx context.Context) (*ddbtypes.TableDescription, error) {
		if e.DynamoDB == nil {
			return nil, errNoClient
		}
		out, err := e.DynamoDB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &e.Table})
		if err == nil && out.Table == nil {
			err = errors.New("dynamodb:DescribeTable: the answer has no table")
		}
		if err != nil {
			return nil, err
		}
		return out.Table, nil
	})
}

// answers gives the store's own check of its table what has been asked already: what a table must be is decided in one place.
type answers struct {
	*dynamodb.Client
	table *ddbtypes.TableDescription
	ttl   *ddbtypes.TimeToLiveDescription
}

func (a answers) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: a.table}, nil
}

func (a answers) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: a.ttl}, nil
}

// storeSays returns the problems that the store has with its table. What is nil is one.
func (e *examination) storeSays(ctx context.Context, table *ddbtypes.TableDescription, ttl *ddbtypes.TimeToLiveDescription) error {
	store, err := dynamostore.New(answers{e.DynamoDB, table, ttl}, e.Table)
	if err != nil {
		return err
	}
	return store.Check(ctx)
}

// checkTable is T1.
func checkTable(ctx context.Context, e *examination) Finding {
	r := report{id: "T1"}
	t, err := e.described(ctx)
	if _, missing := errors.AsType[*ddbtypes.ResourceNotFoundException](err); missing {
		r.fail(awsCommand("dynamodb", "create-table", "--table-name", e.Table, "--attribute-definitions", "AttributeName=id,AttributeType=S",
			"--key-schema", "AttributeName=id,KeyType=HASH", "--billing-mode", "PAY_PER_REQUEST"),
			"table %s does not exist in %s: no handler runs", e.Table, e.DynamoDB.Options().Region)
		return r.finding("")
	}
	if err != nil {
		r.miss(err)
		return r.finding("")
	}
	says := e.storeSays(ctx, t, nil)
	if errors.Is(says, ddberror.ErrKeySchema) {
		r.fail("a key cannot be changed: create a table of another name, with the string attribute id as its only key, and give it to the consumer",
			"table %s has the key %s, not the string attribute id alone: no handler runs", e.Table, keyOf(t))
	}
	if errors.Is(says, dynamostore.ErrNoTable) || errors.Is(says, dynamostore.ErrAccessDenied) {
		r.fail("CREATING ends by itself. INACCESSIBLE_ENCRYPTION_CREDENTIALS: enable the table's KMS key. DELETING or ARCHIVED: create the table again or restore it",
			"table %s accepts no requests: its status is %s", e.Table, t.TableStatus)
	}
	var elsewhere []string
	for _, replica := range t.Replicas {
		if region := aws.ToString(replica.RegionName); region != e.DynamoDB.Options().Region {
			elsewhere = append(elsewhere, region)
		}
	}
	// With multi-Region strong consistency a condition sees the writes of all Regions.
	if slices.Sort(elsewhere); len(elsewhere) > 0 && t.MultiRegionConsistency != ddbtypes.MultiRegionConsistencyStrong {
		r.warn("run the consumers in one Region only. After a failover to another Region the events of the last seconds may run again",
			"table %s has replicas in %s: a condition sees its own Region's records only, so that consumers in two Regions can run an event twice",
			e.Table, strings.Join(elsewhere, ", "))
	}
	return r.finding("table %s has the string attribute id as its key", e.Table)
}

func keyOf(t *ddbtypes.TableDescription) string {
	var key []string
	for _, k := range t.KeySchema {
		name := aws.ToString(k.AttributeName)
		i := slices.IndexFunc(t.AttributeDefinitions, func(d ddbtypes.AttributeDefinition) bool { return aws.ToString(d.AttributeName) == name })
		if i >= 0 {
			name += fmt.Sprintf(" (%s, %s)", t.AttributeDefinitions[i].AttributeType, k.KeyType)
		}
		key = append(key, name)
	}
	return strings.Join(key, " and ")
}

// checkTTL is T2.
func checkTTL(ctx context.Context, e *examination) Finding {
	r := report{id: "T2"}
	if e.DynamoDB == nil {
		return unseen(r.id, errNoClient)
	}
	out, err := e.DynamoDB.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &e.Table})
	if err == nil && (out.TimeToLiveDescription == nil || out.TimeToLiveDescription.TimeToLiveStatus == "") {
		err = errors.New("dynamodb:DescribeTimeToLive: the answer has no status")
	}
	if err != nil {
		return unseen(r.id, err)
	}
	if !errors.Is(e.storeSays(ctx, nil, out.TimeToLiveDescription), ddberror.ErrTTL) {
		return r.finding("table %s has TTL on %s", e.Table, dynamostore.TTLAttribute)
	}
	set := func(enabled, attribute string) string {
		return awsCommand("dynamodb", "update-time-to-live", "--table-name", e.Table, "--time-to-live-specification", "Enabled="+enabled+",AttributeName="+attribute)
	}
	enable := set("true", dynamostore.TTLAttribute)
	const never = "records are never deleted"
	// DynamoDB takes up to an hour for a change, and refuses another one until then.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html
	const hour = "sleep 3600"
	d := out.TimeToLiveDescription
	t, err := e.described(ctx)
	r.miss(err)
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
	strong := t != nil && t.MultiRegionConsistency == ddbtypes.MultiRegionConsistencyStrong
	switch {
	case d != nil && d.TimeToLiveStatus == ddbtypes.TimeToLiveStatusDisabling:
		r.fail(hour+" && "+enable, "table %s has its TTL on %s being disabled: %s", e.Table, aws.ToString(d.AttributeName), never)
	case d != nil && (d.TimeToLiveStatus == ddbtypes.TimeToLiveStatusEnabled || d.TimeToLiveStatus == ddbtypes.TimeToLiveStatusEnabling):
		r.fail(set("false", aws.ToString(d.AttributeName))+" && "+hour+" && "+enable,
			"table %s has TTL on %s, not on %s: %s", e.Table, aws.ToString(d.AttributeName), dynamostore.TTLAttribute, never)
	case strong:
		r.fail("delete expired records by a job of your own, or use a table of one Region",
			"table %s has multi-Region strong consistency, with which DynamoDB has no TTL: %s", e.Table, never)
	default:
		r.fail(enable, "table %s has no TTL on %s: %s", e.Table, dynamostore.TTLAttribute, never)
	}
	return r.finding("")
}

// checkBackups is T3.
func checkBackups(ctx context.Context, e *examination) Finding {
	r := report{id: "T3"}
	if e.DynamoDB == nil {
		return unseen(r.id, errNoClient)
	}
	out, err := e.DynamoDB.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &e.Table})
	if err == nil && out.ContinuousBackupsDescription == nil {
		err = errors.New("dynamodb:DescribeContinuousBackups: the answer has no description")
	}
	if err != nil {
		return unseen(r.id, err)
	}
	d := out.ContinuousBackupsDescription
	if d.PointInTimeRecoveryDescription == nil || d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != ddbtypes.PointInTimeRecoveryStatusEnabled {
		r.warn(awsCommand("dynamodb", "update-continuous-backups", "--table-name", e.Table, "--point-in-time-recovery-specification", "PointInTimeRecoveryEnabled=true"),
			"table %s has no point-in-time recovery: if its records are lost, each event that is delivered again runs again", e.Table)
	}
	return r.finding("table %s has point-in-time recovery", e.Table)
}

// checkProtection is T4.
func checkProtection(ctx context.Context, e *examination) Finding {
	r := report{id: "T4"}
	t, err := e.described(ctx)
	if r.miss(err); err == nil && !aws.ToBool(t.DeletionProtectionEnabled) {
		r.warn(awsCommand("dynamodb", "update-table", "--table-name", e.Table, "--deletion-protection-enabled"),
			"table %s has no deletion protection: one call deletes all records", e.Table)
	}
	return r.finding("table %s has deletion protection", e.Table)
}

// checkCapacity is T5.
func checkCapacity(ctx context.Context, e *examination) Finding {
	r := report{id: "T5"}
	t, err := e.described(ctx)
	// A table that was never billed on demand has no summary.
	if r.miss(err); err == nil && (t.BillingModeSummary == nil || t.BillingModeSummary.BillingMode != ddbtypes.BillingModePayPerRequest) {
		units := int64(0)
		if t.ProvisionedThroughput != nil {
			units = aws.ToInt64(t.ProvisionedThroughput.WriteCapacityUnits)
		}
		r.warn(awsCommand("dynamodb", "update-table", "--table-name", e.Table, "--billing-mode", "PAY_PER_REQUEST"),
			"table %s has a provisioned capacity of %d write units: beyond about %d events a second the consumer is throttled", e.Table, units, units/2)
	}
	return r.finding("table %s is billed on demand", e.Table)
}
