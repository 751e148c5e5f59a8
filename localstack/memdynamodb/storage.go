package memdynamodb

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// table stores items in partitions, one for each partition key. The items of a partition are in the order of the sort
// key.
type table struct {
	description
	created time.Time
	keys    schema
	indexes []index
	ttl     string // the TTL attribute; "": TTL is off

	recovery recovery
	stream   *stream // nil: none is enabled
	tags     []tag

	ongoing    map[key]bool // items for which a transaction is ongoing
	partitions map[string]*partition
	inOrder    []*partition // in Scan's order, a cache of ordered; nil: not computed
	count      int
	bytes      int
}

// partition is the items that have one partition key.
type partition struct {
	hash  uint64 // of the key, for the order and the segments of Scan
	key   string
	items []attr.Map
}

// locate returns the partition of a key, nil if there is none, and the index in it where the item is, or would be.
func (t *table) locate(k key) (p *partition, at int, found bool) {
	p = t.partitions[k.partition]
	if p == nil {
		return nil, 0, false
	}
	if t.keys.sort == "" {
		return p, 0, true // the only item
	}
	at, found = slices.BinarySearchFunc(p.items, k.sort, func(item attr.Map, sort attr.Value) int {
		return compareSort(item.Get(t.keys.sort), sort)
	})
	return p, at, found
}

// compareSort orders sort keys. In a table without sort key both are nil.
func compareSort(a, b attr.Value) int {
	if a == nil {
		return 0
	}
	order, _ := attr.Compare(a, b) // both have the type of the schema
	return order
}

// get returns the item, nil if there is none.
func (t *table) get(k key) attr.Map {
	if p, at, ok := t.locate(k); ok {
		return p.items[at]
	}
	return nil
}

// write sets the item and tells the stream.
func (t *table) write(k key, old, new attr.Map, by *identity) {
	t.set(k, new)
	if t.stream != nil {
		t.stream.add(t.keys.of, k, old, new, by)
	}
}

// set stores the item with the key. A nil item removes the item that is there.
func (t *table) set(k key, item attr.Map) {
	p, at, found := t.locate(k)
	if found {
		t.count--
		t.bytes -= p.items[at].Size()
	}
	if item == nil {
		if found {
			t.remove(p, at)
		}
		return
	}
	t.count++
	t.bytes += item.Size()
	switch {
	case found:
		p.items[at] = item
	case p == nil:
		t.partitions[k.partition] = &partition{hash: hashOf(k.partition), key: k.partition, items: []attr.Map{item}}
		t.inOrder = nil
	default:
		p.items = slices.Insert(p.items, at, item)
	}
}

func (t *table) remove(p *partition, at int) {
	p.items = slices.Delete(p.items, at, at+1)
	if len(p.items) == 0 {
		delete(t.partitions, p.key)
		t.inOrder = nil
	}
}

// ordered returns the partitions in Scan's order, by the hash of the key. It is the same in every run.
func (t *table) ordered() []*partition {
	if t.inOrder != nil {
		return t.inOrder
	}
	order := make([]*partition, 0, len(t.partitions))
	for _, p := range t.partitions {
		order = append(order, p)
	}
	slices.SortFunc(order, func(a, b *partition) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.key, b.key))
	})
	t.inOrder = order
	return order
}

func hashOf(key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return h.Sum64()
}

// schema is the names of the key attributes of a table or index, and their types: "S", "N" or "B". sort is "" if there is
// no sort key.
type schema struct {
	partition, sort string
	types           map[string]string
}

// key is the primary key of an item: the text of the partition key, whose type is in the schema, and the sort key.
type key struct {
	partition string
	sort      attr.Value
}

// DynamoDB's limits, in bytes.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxPartitionKey = 2048
	maxSortKey      = 1024
	maxItem         = 400 << 10
)

func (s *schema) names() []string {
	if s.sort == "" {
		return []string{s.partition}
	}
	return []string{s.partition, s.sort}
}

// ofItem checks and returns the key of a whole item.
func (s *schema) ofItem(item attr.Map) (key, error) {
	for _, name := range s.names() {
		v := item.Get(name)
		if v == nil {
			return key{}, validation(invalidParameters+"Missing the key %s in the item", name)
		}
		if v.Type() != s.types[name] {
			return key{}, validation(invalidParameters+"Type mismatch for key %s expected: %s actual: %s", name, s.types[name], v.Type())
		}
	}
	return s.valid(item)
}

// ofKey checks and returns a key that a request gives as a map of exactly the key attributes.
func (s *schema) ofKey(k attr.Map) (key, error) {
	names := s.names()
	if len(k) != len(names) {
		return key{}, validation("The provided key element does not match the schema")
	}
	for _, name := range names {
		if v := k.Get(name); v == nil || v.Type() != s.types[name] {
			return key{}, validation("The provided key element does not match the schema")
		}
	}
	return s.valid(k)
}

func (s *schema) valid(item attr.Map) (key, error) {
	k := s.at(item)
	for _, name := range s.names() {
		switch item.Get(name) {
		case attr.String(""):
			return key{}, validation("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", name)
		case attr.Binary(""):
			return key{}, validation("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty binary value. Key: %s", name)
		}
	}
	if attr.Size(item.Get(s.partition)) > maxPartitionKey {
		return key{}, validation(invalidParameters+"Size of hashkey has exceeded the maximum size limit of%d bytes", maxPartitionKey)
	}
	if k.sort != nil && attr.Size(k.sort) > maxSortKey {
		return key{}, validation(invalidParameters+"Aggregated size of all range keys has exceeded the size limit of %d bytes", maxSortKey)
	}
	return k, nil
}

// at returns the key of an item whose key is valid.
func (s *schema) at(item attr.Map) key {
	k := key{partition: keyText(item.Get(s.partition))}
	if s.sort != "" {
		k.sort = item.Get(s.sort)
	}
	return k
}

// of returns the key attributes of an item.
func (s *schema) of(item attr.Map) attr.Map {
	var m attr.Map
	for _, name := range s.names() {
		if v := item.Get(name); v != nil {
			m = m.With(name, v)
		}
	}
	return m
}

func keyText(v attr.Value) string {
	switch v := v.(type) {
	case attr.String:
		return string(v)
	case attr.Number:
		return string(v)
	case attr.Binary:
		return string(v)
	}
	return ""
}
