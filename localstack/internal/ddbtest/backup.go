package ddbtest

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
