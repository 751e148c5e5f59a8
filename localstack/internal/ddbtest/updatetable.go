package ddbtest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

type indexUpdates = []ddbtypes.GlobalSecondaryIndexUpdate

// change calls UpdateTable, and waits until the table and its indexes are active.
func (x *exam) change(set func(*dynamodb.UpdateTableInput)) error {
	in := &dynamodb.UpdateTableInput{TableName: &x.table}
	set(in)
	if _, err := x.client().UpdateTable(x.ctx, in); err != nil {
		return err
	}
	x.active()
	return nil
}

// active waits until the table and its indexes are active.
func (x *exam) active() {
	x.until("active", func() bool {
		t := suite.Get(x.describe(x.table))
		active := t.TableStatus == ddbtypes.TableStatusActive
		for _, ix := range t.GlobalSecondaryIndexes {
			active = active && ix.IndexStatus == ddbtypes.IndexStatusActive
		}
		return active
	})
}

// addIndex returns the action that adds an index with the keys, and their definitions.
func addIndex(name string, keys ...string) func(*dynamodb.UpdateTableInput) {
	return func(in *dynamodb.UpdateTableInput) {
		var elements []ddbtypes.KeySchemaElement
		elements, in.AttributeDefinitions = schema(keys...)
		in.GlobalSecondaryIndexUpdates = append(in.GlobalSecondaryIndexUpdates, ddbtypes.GlobalSecondaryIndexUpdate{Create: &ddbtypes.CreateGlobalSecondaryIndexAction{IndexName: &name, KeySchema: elements, Projection: &everything}})
	}
}

func dropIndex(name string) func(*dynamodb.UpdateTableInput) {
	return func(in *dynamodb.UpdateTableInput) {
		in.GlobalSecondaryIndexUpdates = append(in.GlobalSecondaryIndexUpdates, ddbtypes.GlobalSecondaryIndexUpdate{Delete: &ddbtypes.DeleteGlobalSecondaryIndexAction{IndexName: &name}})
	}
}

func setIndex(name string, read, write int64) func(*dynamodb.UpdateTableInput) {
	return func(in *dynamodb.UpdateTableInput) {
		in.GlobalSecondaryIndexUpdates = append(in.GlobalSecondaryIndexUpdates, ddbtypes.GlobalSecondaryIndexUpdate{Update: &ddbtypes.UpdateGlobalSecondaryIndexAction{IndexName: &name, ProvisionedThroughput: unitsOf(read, write)}})
	}
}

func protect(on bool) func(*dynamodb.UpdateTableInput) {
	return func(in *dynamodb.UpdateTableInput) { in.DeletionProtectionEnabled = &on }
}

func all(sets ...func(*dynamodb.UpdateTableInput)) func(*dynamodb.UpdateTableInput) {
	return func(in *dynamodb.UpdateTableInput) {
		for _, set := range sets {
			set(in)
		}
	}
}

func unitsOf(read, write int64) *ddbtypes.ProvisionedThroughput {
	return &ddbtypes.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
}

func bill(mode ddbtypes.BillingMode, p *ddbtypes.ProvisionedThroughput) func(*dynamodb.UpdateTableInput) {
	return func(in *dynamodb.UpdateTableInput) { in.BillingMode, in.ProvisionedThroughput = mode, p }
}

// useProvisioned creates a table with 5 read and 5 write units, and the index by_owner with 2 and 3.
func (x *exam) useProvisioned() {
	in := &dynamodb.CreateTableInput{BillingMode: ddbtypes.BillingModeProvisioned, ProvisionedThroughput: unitsOf(5, 5)}
	in.KeySchema, in.AttributeDefinitions = schema("id:S")
	addGlobal(in, "by_owner", everything, "owner:S")
	in.GlobalSecondaryIndexes[0].ProvisionedThroughput = unitsOf(2, 3)
	x.create(in)
}

// throughput returns the units of the table and of its first index: "5/5 2/3".
func (x *exam) throughput() string {
	t := suite.Get(x.describe(x.table))
	show := func(p *ddbtypes.ProvisionedThroughputDescription) string {
		return fmt.Sprintf("%d/%d", aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits))
	}
	return show(t.ProvisionedThroughput) + " " + show(t.GlobalSecondaryIndexes[0].ProvisionedThroughput)
}

func (x *exam) in(index string) []item {
	return x.scan(func(in *dynamodb.ScanInput) { in.IndexName = &index })
}

// Sources: scylladb/scylladb test/alternator/test_gsi_updatetable.py (named below without its name), architect/dynalite
// test/updateTable.js, and the findings DDB-TABLE of ack-api-quirks, all of which ran on AWS.
var updateTableCases = []testCase{
	{name: "update table/an index added has the items that fit", run: func(x *exam) { // test_gsi_backfill, test_gsi_backfill_empty_string
		x.use("id:S")
		x.fill(m{"id": "a", "x": "hello"}, m{"id": "b", "x": 7}, m{"id": "c"}, m{"id": "d", "x": ""}, m{"id": "e", "x": strings.Repeat("x", 2049)})
		x.ok(x.change(addIndex("by_x", "x:S")))
		x.list("index", x.in("by_x"), m{"id": "a", "x": "hello"})
		x.refused(x.put(m{"id": "f", "x": 3}).err, invalid, "mismatch")
		// AWS, GSI.OnlineOps.ViolationDetection: writes of items that violate the index's keys are rejected from now on.
		x.refused(x.update(m{"id": "b"}, args{update: "SET v = :v", values: m{":v": 1}}).err, invalid, "mismatch")
		x.ok(x.update(m{"id": "b"}, args{update: "SET x = :v", values: m{":v": "mended"}}).err)
		x.ok(x.remove(m{"id": "e"}).err)
		x.list("index then", x.in("by_x"), m{"id": "a", "x": "hello"}, m{"id": "b", "x": "mended"})
		x.fill(m{"id": "g"})
		t := suite.Get(x.describe(x.table))
		equal(x, "definitions", len(t.AttributeDefinitions), 2)
	}},
	{name: "update table/an index removed", run: func(x *exam) { // test_gsi_delete
		x.useIndexed(everything)
		x.ok(x.change(dropIndex("by_owner")))
		x.until("gone", func() bool {
			t := suite.Get(x.describe(x.table))
			return len(t.GlobalSecondaryIndexes) == 0 && len(t.AttributeDefinitions) == 1
		})
		_, err := x.owned()
		x.refused(err, invalid)
		x.fill(m{"id": "a", "owner": 7, "pos": "any"})
	}},
	{name: "update table/a key that another index has", run: func(x *exam) { // test_gsi_delete_with_lsi, test_gsi_backfill_with_real_column
		x.useIndexed(everything)
		x.ok(x.change(addIndex("by_pos", "pos:N", "id:S")))
		x.ok(x.change(dropIndex("by_pos")))
		x.refused(x.put(m{"id": "a", "pos": "no number"}).err, invalid, "mismatch")
		t := suite.Get(x.describe(x.table))
		equal(x, "definitions", len(t.AttributeDefinitions), 3)
	}},
	{name: "update table/indexes refused", run: func(x *exam) { // test_gsi_updatetable_errors, DDB-TABLE-160, 162 and 359
		x.useIndexed(everything)
		for _, c := range []struct {
			set        func(*dynamodb.UpdateTableInput)
			code, text string
		}{
			{addIndex("by_owner", "pos:N"), invalid, "already exists"},
			{addIndex("by_pos", "pos:S"), invalid, "Attributes cannot be redefined"}, // test_gsi_key_type_conflict_on_update
			{all(addIndex("by_x", "x:S"), func(in *dynamodb.UpdateTableInput) { in.AttributeDefinitions = nil }), invalid, "AttributeDefinitions"},
			{all(addIndex("by_x", "x:S"), func(in *dynamodb.UpdateTableInput) { _, in.AttributeDefinitions = schema("y:S") }), invalid, "AttributeDefinitions"},
			{all(addIndex("by_x", "x:S"), addIndex("by_y", "x:S")), "LimitExceededException", "Only 1 online index can be created or deleted simultaneously per table"},
			{all(addIndex("by_x", "x:S"), dropIndex("by_owner")), "LimitExceededException", "Only 1 online index"},
			{all(dropIndex("by_x"), dropIndex("by_owner")), "LimitExceededException", "Only 1 online index"},
			{all(dropIndex("by_owner"), dropIndex("by_owner")), invalid, "Only one global secondary index update per index is allowed simultaneously. Index: by_owner"},
			{dropIndex("none"), notFound, "Requested resource not found: Index none for table " + x.table}, // DDB-TABLE-161
			{setIndex("none", 1, 1), notFound, "Requested resource not found: Index none for table " + x.table},
			{setIndex("by_owner", 1, 1), invalid, "The only Updates for index: by_owner"},
			{func(in *dynamodb.UpdateTableInput) { in.GlobalSecondaryIndexUpdates = indexUpdates{{}} }, invalid, "must not be null"},
			{all(addIndex("by_x", "x:S"), dropIndex("by_owner"), func(in *dynamodb.UpdateTableInput) {
				u := in.GlobalSecondaryIndexUpdates
				u[0].Delete = u[1].Delete
				in.GlobalSecondaryIndexUpdates = u[:1]
			}), invalid, "Only one global secondary index action"},
			{all(addIndex("by_x", "x:S"), protect(true)), invalid, "DeletionProtection modification must be the only operation in the request"},
			{addIndex("x", "x:S"), invalid, "indexName"},
		} {
			x.refused(x.change(c.set), c.code, c.text)
		}
		t := suite.Get(x.describe(x.table))
		equal(x, "indexes", len(t.GlobalSecondaryIndexes), 1)
		equal(x, "protected", aws.ToBool(t.DeletionProtectionEnabled), false)
	}},
	{name: "update table/nothing to do", run: func(x *exam) { // test_updatetable_empty, DDB-TABLE-015
		x.use("id:S")
		x.refused(x.change(func(*dynamodb.UpdateTableInput) {}), invalid, "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates")
		x.refused(x.change(func(in *dynamodb.UpdateTableInput) { in.GlobalSecondaryIndexUpdates = indexUpdates{} }), invalid, "At least one of")
		x.refused(x.change(func(in *dynamodb.UpdateTableInput) { _, in.AttributeDefinitions = schema("id:S") }), invalid, "At least one of")
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
		suite.Get(x.client().DeleteTable(x.ctx, &dynamodb.DeleteTableInput{TableName: &x.table}))
	}},
	{name: "update table/throughput", run: func(x *exam) { // updateTable.js, should triple rates and then reduce if requested
		x.useProvisioned()
		equal(x, "created", x.throughput(), "5/5 2/3")
		x.refused(x.change(bill("", unitsOf(5, 5))), invalid, "The provisioned throughput for the table will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5.")
		x.ok(x.change(all(bill("", unitsOf(7, 5)), setIndex("by_owner", 4, 1))))
		equal(x, "changed", x.throughput(), "7/5 4/1")
		x.refused(x.change(setIndex("by_owner", 4, 1)), invalid, "will not change")
		t := suite.Get(x.describe(x.table))
		p := t.ProvisionedThroughput
		equal(x, "decreases", aws.ToInt64(p.NumberOfDecreasesToday), 0)
		equal(x, "an increase", p.LastIncreaseDateTime != nil && p.LastDecreaseDateTime == nil, true)
		equal(x, "decreases of the index", aws.ToInt64(t.GlobalSecondaryIndexes[0].ProvisionedThroughput.NumberOfDecreasesToday), 1)
		x.ok(x.change(bill("", unitsOf(6, 5))))
		t = suite.Get(x.describe(x.table))
		p = t.ProvisionedThroughput
		equal(x, "decreases then", aws.ToInt64(p.NumberOfDecreasesToday), 1)
		equal(x, "a decrease", p.LastDecreaseDateTime != nil, true)
	}},
	{name: "update table/the response has the units of before", run: func(x *exam) { // DDB-TABLE-165 and 184
		x.useProvisioned()
		in := &dynamodb.UpdateTableInput{TableName: &x.table}
		all(bill("", unitsOf(4, 5)), setIndex("by_owner", 1, 9))(in)
		out := suite.Get(x.client().UpdateTable(x.ctx, in))
		table, index := out.TableDescription.ProvisionedThroughput, out.TableDescription.GlobalSecondaryIndexes[0].ProvisionedThroughput
		equal(x, "read units", aws.ToInt64(table.ReadCapacityUnits), 5)
		equal(x, "decreases", aws.ToInt64(table.NumberOfDecreasesToday), 0)
		equal(x, "a decrease", table.LastDecreaseDateTime != nil, true)
		equal(x, "read units of the index", aws.ToInt64(index.ReadCapacityUnits), 2)
		equal(x, "write units of the index", aws.ToInt64(index.WriteCapacityUnits), 3)
		x.active()
		equal(x, "then", x.throughput(), "4/5 1/9")
	}},
	{name: "update table/throughput refused", run: func(x *exam) { // updateTable.js; DDB-TABLE-174
		x.useProvisioned()
		for _, c := range []struct {
			set  func(*dynamodb.UpdateTableInput)
			text string
		}{
			{bill("", unitsOf(-1, 1)), "Member must have value greater than or equal to 1"},
			{bill("", unitsOf(1, 0)), "Member must have value greater than or equal to 1"},
			{bill("", unitsOf(1_000_000_000_001, 1_000_000_000_001)), "Given value 1000000000001 for ReadCapacityUnits is out of bounds"},
			{bill("", unitsOf(1, 1_000_000_000_001)), "Given value 1000000000001 for WriteCapacityUnits is out of bounds"},
			{setIndex("by_owner", 0, 1), "Member must have value greater than or equal to 1"},
			{all(bill("", unitsOf(9, 9)), addIndex("by_x", "x:S")), "You cannot create or delete index while updating table IOPS"},
			{addIndex("by_x", "x:S"), "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: by_x"},
			{all(setIndex("by_owner", 9, 9), addIndex("by_x", "x:S")), "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: by_x"}, // all or nothing
			{bill("DOG", nil), "billingMode"},
		} {
			x.refused(x.change(c.set), invalid, c.text)
		}
		equal(x, "unchanged", x.throughput(), "5/5 2/3")
	}},
	{name: "update table/to on demand and back", run: func(x *exam) { // DDB-TABLE-152
		x.useProvisioned()
		x.refused(x.change(bill("PAY_PER_REQUEST", unitsOf(1, 1))), invalid, "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
		out := suite.Get(x.client().UpdateTable(x.ctx, &dynamodb.UpdateTableInput{TableName: &x.table, BillingMode: "PAY_PER_REQUEST"}))
		equal(x, "units in the response", aws.ToInt64(out.TableDescription.ProvisionedThroughput.ReadCapacityUnits), 0) // DDB-TABLE-183
		x.active()
		equal(x, "on demand", x.throughput(), "0/0 0/0")
		t := suite.Get(x.describe(x.table))
		equal(x, "mode", t.BillingModeSummary.BillingMode, ddbtypes.BillingModePayPerRequest)
		equal(x, "since", t.BillingModeSummary.LastUpdateToPayPerRequestDateTime != nil, true)
		x.refused(x.change(bill("", unitsOf(1, 1))), invalid, "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified")
		x.refused(x.change(bill("PROVISIONED", nil)), invalid, "ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
		x.refused(x.change(bill("PROVISIONED", unitsOf(4, 5))), invalid, "ProvisionedThroughput must be specified for index: by_owner")
		x.ok(x.change(all(bill("PROVISIONED", unitsOf(4, 5)), setIndex("by_owner", 6, 7))))
		equal(x, "provisioned", x.throughput(), "4/5 6/7")
	}},
}

// Recorded: nubo-db/dynamodb-conformance, createTable/config.test.ts and updateTable/config.test.ts; texts: DDB-TABLE-442.
var settingCases = []testCase{
	{name: "setting/table class", keys: "id:S", run: func(x *exam) {
		class := func() ddbtypes.TableClass {
			t := suite.Get(x.describe(x.table))
			if t.TableClassSummary == nil {
				return ddbtypes.TableClassStandard
			}
			return t.TableClassSummary.TableClass
		}
		set := func(c ddbtypes.TableClass) error {
			return x.change(func(in *dynamodb.UpdateTableInput) { in.TableClass = c })
		}
		equal(x, "default", class(), ddbtypes.TableClassStandard)
		x.ok(set(ddbtypes.TableClassStandardInfrequentAccess))
		equal(x, "changed", class(), ddbtypes.TableClassStandardInfrequentAccess)
		x.refused(set("DOG"), invalid, "Invalid table-class parameter provided.")
		x.refused(x.tryCreate(func(in *dynamodb.CreateTableInput) { in.TableClass = "DOG" }), invalid)
		x.create(&dynamodb.CreateTableInput{TableClass: ddbtypes.TableClassStandardInfrequentAccess}, "id:S")
		equal(x, "created", class(), ddbtypes.TableClassStandardInfrequentAccess)
	}},
	{name: "setting/encryption", run: func(x *exam) {
		x.create(&dynamodb.CreateTableInput{SSESpecification: &ddbtypes.SSESpecification{Enabled: aws.Bool(true)}}, "id:S")
		t := suite.Get(x.describe(x.table))
		equal(x, "status", t.SSEDescription.Status, ddbtypes.SSEStatusEnabled)
		equal(x, "type", t.SSEDescription.SSEType, ddbtypes.SSETypeKms)
		equal(x, "key", strings.HasPrefix(aws.ToString(t.SSEDescription.KMSMasterKeyArn), "arn:aws:kms:"), true)
		x.use("id:S")
		t = suite.Get(x.describe(x.table))
		equal(x, "default", t.SSEDescription, nil)
		set := func(s ddbtypes.SSESpecification) error {
			return x.change(func(in *dynamodb.UpdateTableInput) { in.SSESpecification = &s })
		}
		x.refused(set(ddbtypes.SSESpecification{Enabled: aws.Bool(false)}), invalid, "Table is already encrypted by default")
		x.ok(set(ddbtypes.SSESpecification{Enabled: aws.Bool(true)}))
		x.refused(set(ddbtypes.SSESpecification{Enabled: aws.Bool(true)}), invalid, "Table is already encrypted with given KMSMasterKeyId")
	}},
	{name: "setting/encryption refused", run: func(x *exam) {
		for text, s := range map[string]ddbtypes.SSESpecification{
			"SSEType can not be specified if Enabled is false":        {Enabled: aws.Bool(false), SSEType: "KMS"},
			"KMSMasterKeyId can not be specified if Enabled is false": {Enabled: aws.Bool(false), KMSMasterKeyId: aws.String("key")},
			"SSEType AES256 is not supported":                         {Enabled: aws.Bool(true), SSEType: "AES256"},
			"SSEType KMS is required if KMSMasterKeyId is specified":  {Enabled: aws.Bool(true), KMSMasterKeyId: aws.String("key")},
		} {
			x.refused(x.tryCreate(func(in *dynamodb.CreateTableInput) { in.SSESpecification = &s }), invalid, text)
		}
	}},
	{name: "setting/no stream", keys: "id:S", run: func(x *exam) {
		off := &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(false)}
		x.refused(x.change(func(in *dynamodb.UpdateTableInput) { in.StreamSpecification = off }), invalid, "Table has no stream to disable")
		x.create(&dynamodb.CreateTableInput{StreamSpecification: off}, "id:S")
		err := x.tryCreate(func(in *dynamodb.CreateTableInput) {
			in.StreamSpecification = &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(false), StreamViewType: "NEW_IMAGE"}
		})
		x.refused(err, invalid) // specValidation.test.ts
	}},
}
