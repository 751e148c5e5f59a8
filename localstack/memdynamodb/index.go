package memdynamodb

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// index is a secondary index. It stores nothing: the items of its table that have its key attributes are in it, computed
// for each read.
type index struct {
	name       string
	local      bool
	schema     []keyElement
	keys       schema
	projection projection
	throughput throughput
}

type indexInput struct {
	IndexName             string
	KeySchema             []keyElement
	Projection            *projection
	ProvisionedThroughput *throughput
}

const (
	maxGlobalIndexes = 20
	maxLocalIndexes  = 5
)

func (t *table) addIndexes(in *createTableInput, types map[string]string) error {
	if len(in.GlobalSecondaryIndexes) > maxGlobalIndexes || len(in.LocalSecondaryIndexes) > maxLocalIndexes {
		return validation(invalidParameters + "Number of secondary indexes exceeds per-table limit")
	}
	for i, of := range [][]indexInput{in.GlobalSecondaryIndexes, in.LocalSecondaryIndexes} {
		for _, x := range of {
			ix := index{name: x.IndexName, local: i == 1, schema: x.KeySchema}
			if err := ix.define(t, x, types); err != nil {
				return err
			}
			t.indexes = append(t.indexes, ix)
		}
	}
	return nil
}

func (ix *index) define(t *table, x indexInput, types map[string]string) (err error) {
	if err := validName(x.IndexName); err != nil {
		return err
	}
	if t.index(x.IndexName) != nil {
		return validation(invalidParameters+"Duplicate index name: %s", x.IndexName)
	}
	if ix.keys, err = newSchema(x.KeySchema, types); err != nil {
		return err
	}
	if ix.local && (ix.keys.partition != t.keys.partition || ix.keys.sort == "" || t.keys.sort == "") {
		return validation(invalidParameters+"Table KeySchema does not have a range key, or index %s does not share its hash key and add a range key, which is required when specifying a LocalSecondaryIndex", x.IndexName)
	}
	switch {
	case x.Projection == nil:
		return required("projection")
	case !slices.Contains([]string{"ALL", "INCLUDE", "KEYS_ONLY"}, x.Projection.ProjectionType):
		return validation(invalidParameters+"Unknown ProjectionType: %s", x.Projection.ProjectionType)
	case (x.Projection.ProjectionType == "INCLUDE") != (len(x.Projection.NonKeyAttributes) > 0):
		return validation(invalidParameters+"ProjectionType is %s, but NonKeyAttributes is %v", x.Projection.ProjectionType, x.Projection.NonKeyAttributes)
	}
	ix.projection = *x.Projection
	if x.ProvisionedThroughput != nil {
		ix.throughput = *x.ProvisionedThroughput
	}
	return nil
}

func (t *table) index(name string) *index {
	for i := range t.indexes {
		if t.indexes[i].name == name {
			return &t.indexes[i]
		}
	}
	return nil
}

// project is the part of an item that is in the index, nil if the item is not in it.
func (ix *index) project(t *table, item attr.Map) attr.Map {
	for _, name := range ix.keys.names() {
		if item.Get(name) == nil {
			return nil
		}
	}
	if ix.projection.ProjectionType == "ALL" {
		return item
	}
	out := t.keys.of(item)
	for _, name := range append(ix.keys.names(), ix.projection.NonKeyAttributes...) {
		if v := item.Get(name); v != nil {
			out = out.With(name, v)
		}
	}
	return out
}

// checkIndexKeys refuses an item with a key attribute of an index that has the wrong type or is empty.
func (t *table) checkIndexKeys(item attr.Map) error {
	for i := range t.indexes {
		ix := &t.indexes[i]
		for _, name := range ix.keys.names() {
			v := item.Get(name)
			if v == nil {
				continue
			}
			if v.Type() != ix.keys.types[name] {
				return validation(invalidParameters+"Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", name, ix.keys.types[name], v.Type(), ix.name)
			}
			if v == attr.String("") || v == attr.Binary("") {
				return validation("One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty string value. IndexName: %s, IndexKey: %s", ix.name, name)
			}
		}
	}
	return nil
}

// indexUnits adds what a write consumes in the indexes: nothing if the item in the index does not change, two writes if
// it moves to another key.
func (t *table) indexUnits(u *units, before, after attr.Map) {
	for i := range t.indexes {
		ix := &t.indexes[i]
		old, now := ix.project(t, before), ix.project(t, after)
		switch {
		case old == nil && now == nil, old != nil && now != nil && attr.Equal(old, now):
		case old != nil && now != nil && !attr.Equal(ix.keys.of(old), ix.keys.of(now)):
			u.index(ix.name, writeUnits(old, nil)+writeUnits(nil, now))
		default:
			u.index(ix.name, writeUnits(old, now))
		}
	}
}

func (ix *index) describe(t *table) any {
	out := map[string]any{
		"IndexName": ix.name, "IndexArn": t.TableArn + "/index/" + ix.name, "KeySchema": ix.schema, "Projection": ix.projection,
	}
	count, size := 0, 0
	for _, p := range t.ordered() {
		for _, item := range p.items {
			if in := ix.project(t, item); in != nil {
				count++
				size += in.Size()
			}
		}
	}
	out["ItemCount"], out["IndexSizeBytes"] = count, size
	if !ix.local {
		out["IndexStatus"], out["ProvisionedThroughput"] = "ACTIVE", ix.throughput
	}
	return out
}
