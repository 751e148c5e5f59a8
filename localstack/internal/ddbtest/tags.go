package ddbtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

func tags(of map[string]string) []ddbtypes.Tag {
	all := []ddbtypes.Tag{}
	for key, value := range of {
		all = append(all, ddbtypes.Tag{Key: &key, Value: &value})
	}
	return all
}

// numberedTags returns tags with the keys from..to-1.
func numberedTags(from, to int) map[string]string {
	all := map[string]string{}
	for i := from; i < to; i++ {
		all[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	return all
}

func (x *exam) arn() *string {
	t := suite.Get(x.describe(x.table))
	return t.TableArn
}

func (x *exam) tag(of map[string]string) error {
	_, err := x.client().TagResource(x.ctx, &dynamodb.TagResourceInput{ResourceArn: x.arn(), Tags: tags(of)})
	return err
}

func (x *exam) untag(keys ...string) error {
	_, err := x.client().UntagResource(x.ctx, &dynamodb.UntagResourceInput{ResourceArn: x.arn(), TagKeys: append([]string{}, keys...)})
	return err
}

// tagged expects the table's tags, which AWS changes in the background.
func (x *exam) tagged(want map[string]string) {
	var got map[string]string
	x.until(fmt.Sprintf("the tags %v", want), func() bool {
		out := suite.Get(x.client().ListTagsOfResource(x.ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: x.arn()}))
		got = map[string]string{}
		for _, t := range out.Tags {
			got[*t.Key] = *t.Value
		}
		return maps.Equal(got, want)
	})
}

// Texts and limits are those that AWS returned to others. The names of their tests: scylladb/scylladb test/alternator/test_tag.py,
// architect/dynalite test/listTagsOfResource.js, and the findings DDB-TABLE-108 to 110 and 442 of ack-api-quirks.
var tagCases = []testCase{
	{name: "tag/added, replaced and removed", run: func(x *exam) { // test_tag_resource_basic, test_tag_resource_overwrite
		x.use("id:S")
		x.tagged(map[string]string{})
		x.ok(x.tag(map[string]string{"string": "string", "7": " ", " ": "9", "none": ""}))
		x.tagged(map[string]string{"string": "string", "7": " ", " ": "9", "none": ""})
		x.ok(x.tag(map[string]string{"string": "another"}))
		x.tagged(map[string]string{"string": "another", "7": " ", " ": "9", "none": ""})
		x.ok(x.untag("7", "no such key", " ", "none"))
		x.tagged(map[string]string{"string": "another"})
	}},
	{name: "tag/at creation", run: func(x *exam) { // test_list_tags_from_creation
		x.create(&dynamodb.CreateTableInput{Tags: tags(map[string]string{"a": "1", "b": "2"})}, "id:S")
		x.tagged(map[string]string{"a": "1", "b": "2"})
	}},
	{name: "tag/fifty", run: func(x *exam) { // test_tag_resource_incorrect, DDB-TABLE-108
		x.use("id:S")
		x.ok(x.tag(numberedTags(0, 30)))
		x.tagged(numberedTags(0, 30))
		x.ok(x.tag(numberedTags(20, 50)))
		x.tagged(numberedTags(0, 50))
		x.refused(x.tag(numberedTags(50, 51)), invalid, "Number of Tags exceed the current limit for the provided ResourceArn")
		x.refused(x.tag(map[string]string{"0": "changed", "50": "50"}), invalid, "Number of Tags exceed the current limit for the provided ResourceArn")
		x.tagged(numberedTags(0, 50))
		x.ok(x.tag(numberedTags(0, 50)))
		x.tagged(numberedTags(0, 50))
		x.refused(x.untag(slices.Collect(maps.Keys(numberedTags(0, 51)))...), invalid, "Number of Tags exceed the current limit for the provided ResourceArn")
		x.tagged(numberedTags(0, 50))
	}},
	{name: "tag/refused, and nothing is tagged", run: func(x *exam) { // DDB-TABLE-109 and 442
		x.use("id:S")
		for _, c := range []struct {
			tags map[string]string
			text string
		}{
			{map[string]string{}, "Atleast one Tag needs to be provided as Input."},
			{map[string]string{"": "v"}, "The Tag Key provided is invalid, Key: "},
			{map[string]string{strings.Repeat("k", 129): "v", "good": "v"}, "The Tag Key provided is invalid, Key: k"},
			{map[string]string{"k": strings.Repeat("v", 257), "good": "v"}, "The Tag Value provided is invalid, Value: v"},
			{map[string]string{"aws:k": "v", "good": "v"}, "Tag Key cannot be prefixed with aws:, Key: aws:k"},
			{map[string]string{"k#": "v"}, "The Tag Key provided is invalid, Key: k#"},
			{map[string]string{"k": "#!%%^$$&"}, "The Tag Value provided is invalid, Value: #"},
		} {
			x.refused(x.tag(c.tags), invalid, c.text)
		}
		_, err := x.client().TagResource(x.ctx, &dynamodb.TagResourceInput{ResourceArn: x.arn(), Tags: append(tags(map[string]string{"k": "1"}), tags(map[string]string{"k": "2"})...)})
		x.refused(err, invalid, "Duplicate Tag Keys provided as input: Duplicate Tag Key found k")
		x.refused(x.untag(), invalid, "Atleast one Tag Key needs to be provided as Input.")
		x.refused(x.untag(strings.Repeat("k", 129)), invalid, "The Tag Key provided is invalid, Key: k")
		x.ok(x.tag(map[string]string{strings.Repeat("é", 128): strings.Repeat("é", 256)}))
		x.tagged(map[string]string{strings.Repeat("é", 128): strings.Repeat("é", 256)})
	}},
	{name: "tag/refused at creation, and there is no table", run: func(x *exam) { // test_too_long_tags_from_creation, DDB-TABLE-110
		for _, of := range []map[string]string{numberedTags(0, 51), {"aws:k": "v"}, {strings.Repeat("k", 129): "v"}} {
			var name string
			err := x.tryCreate(func(in *dynamodb.CreateTableInput) { in.Tags, name = tags(of), *in.TableName })
			x.refused(err, invalid)
			_, err = x.describe(name)
			x.refused(err, notFound)
		}
	}},
	{name: "tag/of no table", run: func(x *exam) { // listTagsOfResource.js, test_tag_resource_subtly_incorrect_arn
		x.use("id:S")
		arn := *x.arn()
		for _, c := range []struct{ arn, code string }{{arn + "x", notFound}, {"not an ARN", invalid}, {strings.TrimSuffix(arn, x.table) + "ab", invalid}, {arn + "/index/some", invalid}} {
			_, err := x.client().ListTagsOfResource(x.ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: &c.arn})
			x.refused(err, c.code)
			_, err = x.client().TagResource(x.ctx, &dynamodb.TagResourceInput{ResourceArn: &c.arn, Tags: tags(map[string]string{"k": "v"})})
			x.refused(err, c.code)
			_, err = x.client().UntagResource(x.ctx, &dynamodb.UntagResourceInput{ResourceArn: &c.arn, TagKeys: []string{"k"}})
			x.refused(err, c.code)
		}
	}},
	{name: "tag/responses have no body", run: func(x *exam) { // test_manual_requests.py, test_tags_return_empty_body
		x.use("id:S")
		r := x.send("TagResource", `{"ResourceArn":"`+*x.arn()+`","Tags":[{"Key":"k","Value":"v"}]}`)
		equal(x, "status", r.status, 200)
		equal(x, "body", string(r.body), "")
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
	out := suite.Get(x.client().DescribeContinuousBackups(x.ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &x.table}))
	equal(x, "backups", out.ContinuousBackupsDescription.ContinuousBackupsStatus, "ENABLED")
	return out.ContinuousBackupsDescription.PointInTimeRecoveryDescription
}

// Recorded: localstack/localstack tests/aws/services/dynamodb/test_dynamodb.snapshot.json, test_continuous_backup_update. Texts
// and the period: ack-api-quirks, "RecoveryPeriodInDays: defaults to 35".
var backupCases = []testCase{
	{name: "backup/point-in-time recovery is switched", keys: "id:S", run: func(x *exam) {
		equal(x, "before", x.recoverable().PointInTimeRecoveryStatus, "DISABLED")
		equal(x, "times before", x.recoverable().EarliestRestorableDateTime, nil)
		d := suite.Get(x.recovery(true, nil))
		equal(x, "response", d.PointInTimeRecoveryStatus, "ENABLED")
		d = x.recoverable()
		equal(x, "after", d.PointInTimeRecoveryStatus, "ENABLED")
		equal(x, "days", aws.ToInt32(d.RecoveryPeriodInDays), 35)
		if d.EarliestRestorableDateTime == nil || d.LatestRestorableDateTime == nil || d.LatestRestorableDateTime.Before(*d.EarliestRestorableDateTime) {
			x.fatalf("from %v to %v", d.EarliestRestorableDateTime, d.LatestRestorableDateTime)
		}
		suite.Get(x.recovery(true, aws.Int32(7)))
		equal(x, "changed", aws.ToInt32(x.recoverable().RecoveryPeriodInDays), 7)
		suite.Get(x.recovery(false, nil))
		equal(x, "disabled", x.recoverable().PointInTimeRecoveryStatus, "DISABLED")
		suite.Get(x.recovery(true, nil))
		equal(x, "the old period is forgotten", aws.ToInt32(x.recoverable().RecoveryPeriodInDays), 35)
	}},
	{name: "backup/refused", keys: "id:S", run: func(x *exam) {
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
