package memdynamodb

import (
	"fmt"
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// index is a secondary index. Its rows are the projections of the items of its table that have its key attributes.
type index struct {
	name       string
	local      bool
	schema     []keyElement
	keys       schema
	projection projection
	throughput capacityUnits // of a global index
	rows       *rows
}

type projection struct {
	ProjectionType   string
	NonKeyAttributes []string `json:",omitempty"`
}

type localIndexInput struct {
	IndexName  string
	KeySchema  []keyElement
	Projection *projection
}

// indexInput is a global index of a request.
type indexInput struct {
	localIndexInput
	ProvisionedThroughput *throughput
}

const (
	maxGlobalIndexes = 20
	maxLocalIndexes  = 5
	maxProjected     = 20  // names in a NonKeyAttributes
	maxProjectedAll  = 100 // names in all NonKeyAttributes of a table; a name in two of them counts twice
)

// localMember and globalMember begin the paths of an index's members in the request.
func localMember(i int) string  { return fmt.Sprintf("localSecondaryIndexes.%d.member.", i+1) }
func globalMember(i int) string { return fmt.Sprintf("globalSecondaryIndexes.%d.member.", i+1) }

func (t *tableState) addIndexes(in *createTableInput, types map[string]string) error {
	if in.LocalSecondaryIndexes != nil {
		switch n := len(*in.LocalSecondaryIndexes); {
		case n == 0:
			return validation(invalidParameters + "List of LocalSecondaryIndexes is empty")
		case t.keys.sort == "":
			return validation(invalidParameters + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex")
		case n > maxLocalIndexes:
			return validation(invalidParameters + "Number of LocalSecondaryIndexes exceeds per-table limit of 5")
		}
		for i := range *in.LocalSecondaryIndexes {
			x := &(*in.LocalSecondaryIndexes)[i]
			if err := x.valid(localMember(i)); err != nil {
				return err
			}
			if err := t.addIndex(x, types, true); err != nil {
				return err
			}
		}
	}
	if in.GlobalSecondaryIndexes == nil {
		return nil
	}
	switch n := len(*in.GlobalSecondaryIndexes); {
	case n == 0:
		return validation(invalidParameters + "List of GlobalSecondaryIndexes is empty")
	case n > maxGlobalIndexes:
		return validation(invalidParameters + "GlobalSecondaryIndex count exceeds the per-table limit of 20")
	}
	for i := range *in.GlobalSecondaryIndexes {
		x := &(*in.GlobalSecondaryIndexes)[i]
		if err := x.valid(globalMember(i)); err != nil {
			return err
		}
		switch p := x.ProvisionedThroughput; {
		case t.onDemand() && p != nil:
			return validation(invalidParameters+"ProvisionedThroughput should not be specified for index: %s when BillingMode is PAY_PER_REQUEST", x.IndexName)
		case !t.onDemand() && p == nil:
			return validation(invalidParameters+"ProvisionedThroughput is not specified for index: %s", x.IndexName)
		}
		if err := t.addIndex(&x.localIndexInput, types, false); err != nil {
			return err
		}
		if x.ProvisionedThroughput != nil {
			t.indexes[len(t.indexes)-1].throughput.set(x.ProvisionedThroughput)
		}
	}
	return nil
}

// addIndex adds an index whose input is valid.
func (t *tableState) addIndex(x *localIndexInput, types map[string]string, local bool) (err error) {
	ix := index{name: x.IndexName, local: local, schema: x.KeySchema, projection: *x.Projection}
	if t.index(ix.name) != nil {
		return validation(invalidParameters+"Duplicate index name: %s", ix.name)
	}
	if ix.keys, err = newSchema(x.KeySchema, types); err != nil {
		return err
	}
	switch {
	case local && ix.keys.sort == "":
		return validation(invalidParameters+"Index KeySchema does not have a range key for index: %s", ix.name)
	case local && ix.keys.partition != t.keys.partition:
		return validation(invalidParameters+"Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s", ix.name, ix.keys.partition, t.keys.partition)
	}
	ix.rows = &rows{keys: ix.keys, table: t.keys}
	t.indexes = append(t.indexes, ix)
	projected := 0
	for _, ix := range t.indexes {
		projected += len(ix.projection.NonKeyAttributes)
	}
	if projected > maxProjectedAll { // the text is ours: AWS's is not known
		return validation(invalidParameters+"NonKeyAttributes of all indexes have %d names, must be at most %d", projected, maxProjectedAll)
	}
	return nil
}

// valid checks a global index without a look at its table. member begins the paths of its members in the request.
func (x *indexInput) valid(member string) error {
	hashes := 0
	for _, e := range x.KeySchema {
		if e.KeyType == "HASH" {
			hashes++
		}
	}
	if len(x.KeySchema) > 2 || hashes > 1 {
		return unimplemented("keys of several attributes (" + member + "keySchema)")
	}
	return constraints(x.localIndexInput.valid(member), x.ProvisionedThroughput.valid(member+"provisionedThroughput"))
}

func (x *localIndexInput) valid(member string) error {
	return constraints(validKeySchema(x.KeySchema, member), x.Projection.valid(member+"projection"), validNameOf(x.IndexName, member+"indexName"))
}

// valid checks a projection, whose path in the request is member.
func (p *projection) valid(member string) error {
	switch {
	case p == nil:
		return required(member)
	case p.ProjectionType == "":
		return validation(invalidParameters + "Unknown ProjectionType: null")
	case !slices.Contains([]string{"ALL", "INCLUDE", "KEYS_ONLY"}, p.ProjectionType):
		return constraint(p.ProjectionType, member+".projectionType", "Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]")
	}
	member += ".nonKeyAttributes"
	switch n := len(p.NonKeyAttributes); {
	case p.NonKeyAttributes != nil && n == 0:
		return constraint("[]", member, "Member must have length greater than or equal to 1")
	case n > maxProjected:
		return constraint(p.NonKeyAttributes, member, "Member must have length less than or equal to 20")
	case p.ProjectionType == "INCLUDE" && n == 0:
		return validation(invalidParameters + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	case p.ProjectionType != "INCLUDE" && n > 0:
		return validation(invalidParameters+"ProjectionType is %s, but NonKeyAttributes is specified", p.ProjectionType)
	}
	for i, name := range p.NonKeyAttributes {
		if err := validAttributeName(name, fmt.Sprintf("%s.%d.member", member, i+1)); err != nil {
			return err
		}
		if slices.Contains(p.NonKeyAttributes[:i], name) {
			return validation(invalidParameters+"Duplicate element in NonKeyAttributes: %s", name)
		}
	}
	return nil
}

func (t *tableState) index(name string) *index {
	for i := range t.indexes {
		if t.indexes[i].name == name {
			return &t.indexes[i]
		}
	}
	return nil
}

// project is the part of an item that is in the index, nil if the item is not in it.
func (ix *index) project(item attr.Map) attr.Map {
	for _, name := range ix.keys.names() {
		if v := item.Get(name); v == nil || ix.checkKey(name, v) != nil { // it may be older than the index
			return nil
		}
	}
	if ix.projection.ProjectionType == "ALL" {
		return item
	}
	out := ix.rows.table.of(item)
	for _, name := range append(ix.keys.names(), ix.projection.NonKeyAttributes...) {
		if v := item.Get(name); v != nil {
			out = out.With(name, v)
		}
	}
	return out
}

// replace puts an item of the table in the place of another. Each may be nil.
func (ix *index) replace(old, new attr.Map) {
	if old = ix.project(old); old != nil {
		ix.rows.remove(ix.rows.placeOf(old))
	}
	if new = ix.project(new); new != nil {
		ix.rows.put(new)
	}
}

// projects reports whether the index has the attribute of its items.
func (ix *index) projects(name string) bool {
	return ix.projection.ProjectionType == "ALL" || slices.Contains(ix.rows.table.names(), name) || slices.Contains(ix.keys.names(), name) || slices.Contains(ix.projection.NonKeyAttributes, name)
}

// checkNested refuses paths into key attributes, which are no lists or maps. attributes are those into which there are paths.
func (t *table) checkNested(attributes []string) error {
	const text = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	for _, name := range attributes {
		if slices.Contains(t.keys.names(), name) {
			return validation(text+"Key: %s", name)
		}
		for i := range t.indexes {
			if slices.Contains(t.indexes[i].keys.names(), name) {
				return validation(text+"IndexKey: %s", name)
			}
		}
	}
	return nil
}

// checkIndexKeys refuses an item with an attribute that cannot be the key of an index that has the attribute as a key.
func (t *table) checkIndexKeys(item attr.Map) error {
	for i := range t.indexes {
		if err := t.indexes[i].checkKeys(item); err != nil {
			return err
		}
	}
	return nil
}

func (ix *index) checkKeys(item attr.Map) error {
	for _, name := range ix.keys.names() {
		if v := item.Get(name); v != nil {
			if err := ix.checkKey(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKey refuses a value of a key attribute that has the wrong type, is empty or too long.
func (ix *index) checkKey(name string, v attr.Value) error {
	if v.Type() != ix.keys.types[name] {
		return validation(invalidParameters+"Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", name, ix.keys.types[name], v.Type(), ix.name)
	}
	if err := ix.checkEmpty(name, v); err != nil {
		return err
	}
	limit := maxPartitionKey
	if name != ix.keys.partition {
		limit = maxSortKey
	}
	if size := attr.Size(v); size > limit {
		return validation(invalidParameters+"Size limit exceeded for Index Key %s Actual Size: %d bytes Max Size: %d bytes IndexName: %s", name, size, limit, ix.name)
	}
	return nil
}

func (ix *index) checkEmpty(name string, v attr.Value) error {
	return checkEmptyAs("A value specified for a secondary index key is not supported. "+emptyValue+" IndexName: %s, IndexKey: %s", v, ix.name, name)
}

// indexUnits adds what a write consumes in the indexes: nothing if the item in the index does not change, two writes if
// it moves to another key.
func (t *table) indexUnits(u *units, before, after attr.Map) {
	for i := range t.indexes {
		ix := &t.indexes[i]
		old, now := ix.project(before), ix.project(after)
		switch {
		case old == nil && now == nil, old != nil && now != nil && attr.Equal(old, now):
		case old != nil && now != nil && !attr.Equal(ix.keys.of(old), ix.keys.of(now)):
			u.index(ix.name, writeUnits(old, nil)+writeUnits(nil, now))
		default:
			u.index(ix.name, writeUnits(old, now))
		}
	}
}

func (ix *index) describe(t *table) map[string]any {
	return map[string]any{
		"IndexName": ix.name, "IndexArn": t.TableArn + "/index/" + ix.name, "KeySchema": ix.schema, "Projection": ix.projection,
		"ItemCount": ix.rows.count, "IndexSizeBytes": ix.rows.bytes,
	}
}
