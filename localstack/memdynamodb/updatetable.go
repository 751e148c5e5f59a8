package memdynamodb

import (
	"fmt"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

type updateTableInput struct {
	TableName                   string
	AttributeDefinitions        []attributeDefinition // of the keys of a new index; what else is there does not count
	BillingMode                 string
	ProvisionedThroughput       *throughput
	DeletionProtectionEnabled   *bool
	GlobalSecondaryIndexUpdates *[]indexUpdate
	StreamSpecification         *streamInput
	SSESpecification            *encryptionInput
	TableClass                  string
}

// indexUpdate is one action on one index.
type indexUpdate struct {
	Create *indexInput
	Update *struct {
		IndexName             string
		ProvisionedThroughput *throughput
	}
	Delete *struct{ IndexName string }
}

// updateTable makes all the changes or none. They hold from now on, a new index has its items: only the response says UPDATING, and
// has the units of before.
func (s *Server) updateTable(_ *call, in *updateTableInput) (any, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	was, next, now := t.tableState, t.tableState, t.at
	next.indexes = slices.Clone(t.indexes)
	if err := next.change(in, now); err != nil {
		return nil, err
	}
	t.tableState = next
	s.mu.Lock()
	t.setStream(in.StreamSpecification)
	s.mu.Unlock()
	status := "UPDATING"
	if in.DeletionProtectionEnabled != nil { // alone, as validate has seen
		status = "ACTIVE"
	}
	out := t.describe(status, now)
	if was.onDemand() == t.onDemand() {
		out.withUnitsOf(&was, now)
	}
	return map[string]any{"TableDescription": out}, nil
}

// withUnitsOf gives the description the units and numbers of decreases that the table and its indexes had before. Times are those of
// the change. So AWS answers: DDB-TABLE-165 and 184 of ack-api-quirks.
func (d *tableDescription) withUnitsOf(was *tableState, now time.Time) {
	d.ProvisionedThroughput.take(was.ProvisionedThroughput.at(now))
	for _, ix := range d.GlobalSecondaryIndexes {
		if old := was.index(ix["IndexName"].(string)); old != nil {
			units := ix["ProvisionedThroughput"].(capacityUnits)
			units.take(old.throughput.at(now))
			ix["ProvisionedThroughput"] = units
		}
	}
}

// validate checks what needs no look at the table.
func (in *updateTableInput) validate() error {
	if err := validTable(in.TableName); err != nil {
		return err
	}
	if err := validBilling(in.BillingMode); err != nil {
		return err
	}
	if err := in.ProvisionedThroughput.valid("provisionedThroughput"); err != nil {
		return err
	}
	if err := in.StreamSpecification.valid(); err != nil {
		return err
	}
	if err := validClass(in.TableClass); err != nil {
		return err
	}
	if err := in.SSESpecification.valid(); err != nil {
		return err
	}
	updates := in.updates()
	for i := range updates {
		if err := updates[i].valid(fmt.Sprintf("globalSecondaryIndexUpdates.%d.member.", i+1)); err != nil {
			return err
		}
	}
	if err := in.together(len(updates)); err != nil {
		return err
	}
	return eachOnce(updates)
}

func (in *updateTableInput) updates() []indexUpdate {
	if in.GlobalSecondaryIndexUpdates == nil {
		return nil
	}
	return *in.GlobalSecondaryIndexUpdates
}

// together refuses a request that changes nothing, and changes that AWS makes only one by one.
func (in *updateTableInput) together(updates int) error {
	changes := 0
	for _, given := range []bool{in.BillingMode != "" || in.ProvisionedThroughput != nil, updates > 0, in.StreamSpecification != nil, in.SSESpecification != nil, in.TableClass != "", in.DeletionProtectionEnabled != nil} {
		if given {
			changes++
		}
	}
	switch {
	case changes == 0:
		return validation("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required")
	case in.GlobalSecondaryIndexUpdates != nil && updates == 0:
		return validation(invalidParameters + "List of GlobalSecondaryIndexUpdates is empty")
	case changes == 1:
		return nil
	case in.SSESpecification != nil:
		return validation(invalidParameters + "Server-Side Encryption modification must be the only operation in the request")
	case in.TableClass != "":
		return validation(invalidParameters + "TableClass modification must be the only operation in the request")
	case in.DeletionProtectionEnabled != nil:
		return validation(invalidParameters + "DeletionProtection modification must be the only operation in the request")
	case in.ProvisionedThroughput != nil && in.BillingMode == "" && slices.ContainsFunc(in.updates(), indexUpdate.online):
		return validation(invalidParameters + "You cannot create or delete index while updating table IOPS")
	}
	return nil
}

// eachOnce refuses two actions on one index.
func eachOnce(updates []indexUpdate) error {
	seen := map[string]bool{}
	for _, u := range updates {
		name := u.name()
		if seen[name] {
			return validation(invalidParameters+"Only one global secondary index update per index is allowed simultaneously. Index: %s", name)
		}
		seen[name] = true
	}
	return nil
}

// online reports whether the action creates or deletes an index.
func (u indexUpdate) online() bool { return u.Update == nil }

func (u indexUpdate) name() string {
	switch {
	case u.Create != nil:
		return u.Create.IndexName
	case u.Update != nil:
		return u.Update.IndexName
	}
	return u.Delete.IndexName
}

func (u indexUpdate) valid(member string) error {
	actions := 0
	for _, given := range []bool{u.Create != nil, u.Update != nil, u.Delete != nil} {
		if given {
			actions++
		}
	}
	switch {
	case actions == 0:
		return validation(invalidParameters + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null")
	case actions > 1:
		return validation(invalidParameters + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
	case u.Create != nil:
		return u.Create.valid(member + "create.")
	case u.Delete != nil:
		return validNameOf(u.Delete.IndexName, member+"delete.indexName")
	}
	if err := validNameOf(u.Update.IndexName, member+"update.indexName"); err != nil {
		return err
	}
	if u.Update.ProvisionedThroughput == nil {
		return required(member + "update.provisionedThroughput")
	}
	return u.Update.ProvisionedThroughput.valid(member + "update.provisionedThroughput")
}

// change applies the request to the table, a copy: after an error it is of no use.
func (t *tableState) change(in *updateTableInput, now time.Time) error {
	updates := in.updates()
	if online := slices.DeleteFunc(slices.Clone(updates), func(u indexUpdate) bool { return !u.online() }); len(online) > 1 {
		return awsjson.Invalid("LimitExceededException", "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table")
	}
	if err := t.bill(in, now); err != nil {
		return err
	}
	for _, u := range updates {
		if err := t.changeIndex(u, in.AttributeDefinitions, now); err != nil {
			return err
		}
	}
	switch {
	case in.StreamSpecification != nil:
		return t.checkStream(in.StreamSpecification)
	case in.SSESpecification != nil:
		return t.encrypt(in.SSESpecification)
	case in.TableClass != "":
		t.TableClassSummary = &tableClass{in.TableClass, seconds(now)}
	case in.DeletionProtectionEnabled != nil:
		t.DeletionProtectionEnabled = *in.DeletionProtectionEnabled
	}
	return nil
}

// bill changes the billing mode and the table's throughput. A table that becomes provisioned gets the throughput of all its
// indexes in the same request.
func (t *tableState) bill(in *updateTableInput, now time.Time) error {
	was, p := t.onDemand(), in.ProvisionedThroughput
	becomes := was && in.BillingMode == "" || in.BillingMode == onDemand
	switch {
	case becomes && p != nil:
		return validation(invalidParameters + noUnitsOnDemand)
	case in.BillingMode == provisioned && p == nil:
		return validation(invalidParameters + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
	case becomes && !was:
		t.BillingModeSummary = &billing{onDemand, seconds(now)}
		t.ProvisionedThroughput = capacityUnits{}
		for i := range t.indexes {
			t.indexes[i].throughput = capacityUnits{}
		}
	case was && !becomes:
		t.BillingModeSummary = &billing{provisioned, t.BillingModeSummary.LastUpdateToPayPerRequestDateTime}
		t.ProvisionedThroughput.set(p)
		for i := range t.indexes {
			ix := &t.indexes[i]
			given := func(u indexUpdate) bool { return u.Update != nil && u.Update.IndexName == ix.name }
			if !ix.local && !slices.ContainsFunc(in.updates(), given) {
				return validation(invalidParameters+"ProvisionedThroughput must be specified for index: %s", ix.name)
			}
		}
	case p != nil:
		return t.ProvisionedThroughput.change(p, "table", now)
	}
	return nil
}

func (t *tableState) changeIndex(u indexUpdate, definitions []attributeDefinition, now time.Time) error {
	ix := t.index(u.name())
	switch {
	case u.Create != nil && ix != nil:
		return validation("Attempting to create an index which already exists")
	case u.Create != nil:
		return t.createIndex(u.Create, definitions)
	case ix == nil: // for Update as for Delete, whatever the billing mode: DDB-TABLE-161 of ack-api-quirks
		return awsjson.Invalid("ResourceNotFoundException", "Requested resource not found: Index "+u.name()+" for table "+t.TableName)
	case ix.local && u.Delete != nil:
		return validation("Cannot delete an index that is not a GlobalSecondaryIndex: %s", ix.name)
	case ix.local:
		return validation("Cannot update an index that is not a GlobalSecondaryIndex: %s", ix.name)
	case u.Delete != nil:
		t.indexes = slices.DeleteFunc(t.indexes, func(o index) bool { return o.name == ix.name })
		t.define(nil)
		return nil
	case t.onDemand():
		return validation(invalidParameters+"The only Updates for index: %s when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput", ix.name)
	}
	return ix.throughput.change(u.Update.ProvisionedThroughput, "index "+ix.name, now)
}

// createIndex adds an index to a table. Items whose values cannot be its keys stay in the table and are not in it. From then on
// every write of such an item is refused, also an update of its other attributes.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.OnlineOps.ViolationDetection.html
func (t *tableState) createIndex(in *indexInput, definitions []attributeDefinition) error {
	global := 0
	for i := range t.indexes {
		if !t.indexes[i].local {
			global++
		}
	}
	if global == maxGlobalIndexes {
		return awsjson.Invalid("LimitExceededException", "Subscriber limit exceeded: GlobalSecondaryIndex count exceeds the per-table limit of 20")
	}
	if len(definitions) == 0 {
		return validation(invalidParameters+"AttributeDefinitions is not specified for index: %s", in.IndexName)
	}
	types, err := attributeTypes(definitions)
	if err != nil {
		return err
	}
	if err := t.sameTypes(in.KeySchema, types); err != nil {
		return err
	}
	if err := t.addIndex(&in.localIndexInput, types, false); err != nil {
		return err
	}
	ix := &t.indexes[len(t.indexes)-1]
	switch p := in.ProvisionedThroughput; {
	case t.onDemand() && p != nil:
		return validation(invalidParameters+"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: %s when BillingMode is PAY_PER_REQUEST", ix.name)
	case !t.onDemand() && p == nil:
		return validation(invalidParameters+"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: %s", ix.name)
	case p != nil:
		ix.throughput.set(p)
	}
	for e := range t.rows.all() {
		ix.replace(nil, e.item)
	}
	t.define(definitions)
	return nil
}

// sameTypes refuses a key attribute whose type the table or another index knows otherwise.
func (t *tableState) sameTypes(elements []keyElement, types map[string]string) error {
	for _, e := range elements {
		for _, d := range t.AttributeDefinitions {
			if kind := types[e.AttributeName]; d.AttributeName == e.AttributeName && kind != "" && kind != d.AttributeType {
				return validation(invalidParameters+"Attributes cannot be redefined. Please check that your attribute has the same type as previously defined. Existing schema: Schema:[SchemaElement: key{%s:%s:%s}] New schema: Schema:[SchemaElement: key{%[1]s:%[4]s:%[3]s}]",
					e.AttributeName, d.AttributeType, e.KeyType, kind)
			}
		}
	}
	return nil
}

// define sets the table's definitions to those of its keys and of the keys of its indexes.
func (t *tableState) define(added []attributeDefinition) {
	used := t.usedKeys()
	var all []attributeDefinition
	for _, d := range slices.Concat(t.AttributeDefinitions, added) {
		if used[d.AttributeName] {
			all = append(all, d)
			delete(used, d.AttributeName)
		}
	}
	t.AttributeDefinitions = all
}
