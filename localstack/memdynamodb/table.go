package memdynamodb

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// table holds a table's items, by partition key and then in the order of the sort key.
type table struct {
	description
	created time.Time
	keys    schema
	indexes []index
	ttl     string // TTL attribute, "": off

	partitions map[string]*partition
	inOrder    []*partition // as Scan goes; nil: to be made again
	count      int
	bytes      int
}

// partition is the items that share a partition key.
type partition struct {
	hash  uint64 // of the partition key: Scan's order, and its segments
	key   string
	items []attr.Map
}

// newPartition returns the partition of a first item, which in a table without a sort key is its only one: in one piece
// with its place.
func newPartition(key string, item attr.Map) *partition {
	p := &struct {
		partition
		first [1]attr.Map
	}{partition{hash: hashOf(key), key: key}, [1]attr.Map{item}}
	p.items = p.first[:]
	return &p.partition
}

// locate returns the partition and place of a key, and whether an item is there.
func (t *table) locate(k key) (p *partition, at int, found bool) {
	p = t.partitions[k.partition]
	if p == nil {
		return nil, 0, false
	}
	if t.keys.sort == "" {
		return p, 0, true // its only item
	}
	at, found = slices.BinarySearchFunc(p.items, k.sort, func(item attr.Map, sort attr.Value) int {
		return compareSort(item.Get(t.keys.sort), sort)
	})
	return p, at, found
}

// compareSort orders sort keys; in a table without one all are nil and equal.
func compareSort(a, b attr.Value) int {
	if a == nil {
		return 0
	}
	order, _ := attr.Compare(a, b) // a key's type is the schema's
	return order
}

// get returns the item, nil if there is none.
func (t *table) get(k key) attr.Map {
	if p, at, ok := t.locate(k); ok {
		return p.items[at]
	}
	return nil
}

// set puts the item in the place of the key, or removes what is there if item is nil.
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
		t.partitions[k.partition] = newPartition(k.partition, item)
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

// ordered returns the partitions in Scan's order: by the hash of the key, the same on every run.
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
