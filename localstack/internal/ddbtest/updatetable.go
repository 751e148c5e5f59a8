package ddbtest

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// change calls UpdateTable, and waits until the table is active.
func (x *exam) change(set func(*dynamodb.UpdateTableInput)) error {
	in := &dynamodb.UpdateTableInput{TableName: &x.table}
	set(in)
	if _, err := x.client().UpdateTable(x.ctx, in); err != nil {
		return err
	}
	x.until("active", func() bool {
		t, err := x.describe(x.table)
		x.ok(err)
		return t.TableStatus == ddbtypes.TableStatusActive
	})
	return nil
}

func protect(on bool) func(*dynamodb.UpdateTableInput) {
	return func(in *dynamodb.UpdateTableInput) { in.DeletionProtectionEnabled = &on }
}

func unitsOf(read, write int64) *ddbtypes.ProvisionedThroughput {
	return &ddbtypes.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
}

func bill(mode ddbtypes.BillingMode, p *ddbtypes.ProvisionedThroughput) func(*dynamodb.UpdateTableInput) {
	return func(in *dynamodb.UpdateTableInput) { in.BillingMode, in.ProvisionedThroughput = mode, p }
}

// throughput expects the billing mode and the units of the table.
func (x *exam) throughput(what string, mode ddbtypes.BillingMode, read, write int64) {
	t, err := x.describe(x.table)
	x.ok(err)
	onDemand := t.BillingModeSummary != nil && t.BillingModeSummary.BillingMode == ddbtypes.BillingModePayPerRequest
	equal(x, what+", on demand", onDemand, mode == ddbtypes.BillingModePayPerRequest)
	equal(x, what+", read units", aws.ToInt64(t.ProvisionedThroughput.ReadCapacityUnits), read)
	equal(x, what+", write units", aws.ToInt64(t.ProvisionedThroughput.WriteCapacityUnits), write)
}

// Sources: scylladb/scylladb test/alternator/test_gsi_updatetable.py, architect/dynalite test/updateTable.js, and the findings
// DDB-TABLE of ack-api-quirks, all of which ran on AWS.
var updateTableCases = []testCase{
	{name: "update table/nothing to do", run: func(x *exam) { // test_updatetable_empty, DDB-TABLE-015
		x.use("id:S")
		x.refused(x.change(func(*dynamodb.UpdateTableInput) {}), invalid, "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates")
	}},
	{name: "update table/protected against deletion", run: func(x *exam) { // nubo-db/dynamodb-conformance, updateTable/config.test.ts
		x.use("id:S")
		x.ok(x.change(protect(true)))
		t, err := x.describe(x.table)
		x.ok(err)
		equal(x, "described", aws.ToBool(t.DeletionProtectionEnabled), true)
		_, err = x.client().DeleteTable(x.ctx, &dynamodb.DeleteTableInput{TableName: &x.table})
		x.refused(err, invalid, "Resource cannot be deleted as it is currently protected against deletion")
		x.ok(x.change(protect(false)))
		_, err = x.client().DeleteTable(x.ctx, &dynamodb.DeleteTableInput{TableName: &x.table})
		x.ok(err)
	}},
	{name: "update table/protection and billing", run: func(x *exam) {
		x.use("id:S")
		err := x.change(func(in *dynamodb.UpdateTableInput) {
			protect(true)(in)
			bill("PROVISIONED", unitsOf(1, 1))(in)
		})
		x.refused(err, invalid, "DeletionProtection modification must be the only operation in the request")
	}},
	{name: "update table/billing and throughput", run: func(x *exam) { // updateTable.js; DDB-TABLE-152 and 174
		x.use("id:S")
		const onlyProvisioned = "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
		for _, mode := range []ddbtypes.BillingMode{"", "PAY_PER_REQUEST"} {
			x.refused(x.change(bill(mode, unitsOf(1, 1))), invalid, onlyProvisioned)
		}
		x.refused(x.change(bill("PROVISIONED", nil)), invalid, "ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
		x.refused(x.change(bill("DOG", nil)), invalid, "billingMode")
		x.ok(x.change(bill("PROVISIONED", unitsOf(4, 5))))
		x.throughput("provisioned", ddbtypes.BillingModeProvisioned, 4, 5)
		for _, units := range []*ddbtypes.ProvisionedThroughput{unitsOf(-1, 1), unitsOf(1, 0)} {
			x.refused(x.change(bill("", units)), invalid, "Member must have value greater than or equal to 1")
		}
		x.ok(x.change(bill("", unitsOf(7, 6))))
		x.throughput("changed", ddbtypes.BillingModeProvisioned, 7, 6)
		x.ok(x.change(bill("PAY_PER_REQUEST", nil)))
		x.throughput("on demand", ddbtypes.BillingModePayPerRequest, 0, 0)
	}},
	{name: "update table/no stream", run: func(x *exam) { // recorded: nubo-db/dynamodb-conformance, createTable/config.test.ts
		x.use("id:S")
		off := &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(false)}
		x.refused(x.change(func(in *dynamodb.UpdateTableInput) { in.StreamSpecification = off }), invalid, "Table has no stream to disable")
		in := &dynamodb.CreateTableInput{StreamSpecification: off}
		in.KeySchema, in.AttributeDefinitions = schema("id:S")
		x.create(in)
		err := x.tryCreate(func(in *dynamodb.CreateTableInput) {
			in.StreamSpecification = &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(false), StreamViewType: "NEW_IMAGE"}
		})
		x.refused(err, invalid) // specValidation.test.ts
	}},
}

func (x *exam) recovery(enabled bool, days *int32) (*ddbtypes.PointInTimeRecoveryDescription, error) {
	out, err := x.client().UpdateContinuousBackups(x.ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: &x.table, PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: &enabled, RecoveryPeriodInDays: days},
	})
	if err != nil {
		return nil, err
	}
	return out.ContinuousBackupsDescription.PointInTimeRecoveryDescription, nil
}

func (x *exam) recoverable() *ddbtypes.PointInTimeRecoveryDescription {
	out, err := x.client().DescribeContinuousBackups(x.ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &x.table})
	x.ok(err)
	equal(x, "backups", out.ContinuousBackupsDescription.ContinuousBackupsStatus, "ENABLED")
	return out.ContinuousBackupsDescription.PointInTimeRecoveryDescription
}

// Recorded: localstack/localstack tests/aws/services/dynamodb/test_dynamodb.snapshot.json, test_continuous_backup_update. Texts
// and the period: ack-api-quirks, "RecoveryPeriodInDays: defaults to 35".
var backupCases = []testCase{
	{name: "backup/point-in-time recovery is switched", run: func(x *exam) {
		x.use("id:S")
		equal(x, "before", x.recoverable().PointInTimeRecoveryStatus, "DISABLED")
		equal(x, "times before", x.recoverable().EarliestRestorableDateTime, nil)
		d, err := x.recovery(true, nil)
		x.ok(err)
		equal(x, "response", d.PointInTimeRecoveryStatus, "ENABLED")
		d = x.recoverable()
		equal(x, "after", d.PointInTimeRecoveryStatus, "ENABLED")
		equal(x, "days", aws.ToInt32(d.RecoveryPeriodInDays), 35)
		if d.EarliestRestorableDateTime == nil || d.LatestRestorableDateTime == nil || d.LatestRestorableDateTime.Before(*d.EarliestRestorableDateTime) {
			x.fatalf("from %v to %v", d.EarliestRestorableDateTime, d.LatestRestorableDateTime)
		}
		_, err = x.recovery(true, aws.Int32(7))
		x.ok(err)
		equal(x, "changed", aws.ToInt32(x.recoverable().RecoveryPeriodInDays), 7)
		_, err = x.recovery(false, nil)
		x.ok(err)
		equal(x, "disabled", x.recoverable().PointInTimeRecoveryStatus, "DISABLED")
		_, err = x.recovery(true, nil)
		x.ok(err)
		equal(x, "the old period is forgotten", aws.ToInt32(x.recoverable().RecoveryPeriodInDays), 35)
	}},
	{name: "backup/refused", run: func(x *exam) {
		x.use("id:S")
		_, err := x.recovery(true, aws.Int32(36))
		x.refused(err, invalid, "Member must have value less than or equal to 35")
		_, err = x.recovery(true, aws.Int32(0))
		x.refused(err, invalid, "Member must have value greater than or equal to 1")
		_, err = x.recovery(false, aws.Int32(7))
		x.refused(err, invalid, "Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery")
		equal(x, "status", x.recoverable().PointInTimeRecoveryStatus, "DISABLED")
		x.table = x.newName()
		_, err = x.recovery(true, nil)
		x.refused(err, "TableNotFoundException")
		_, err = x.client().DescribeContinuousBackups(x.ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &x.table})
		x.refused(err, "TableNotFoundException")
	}},
}
