package memdynamodb

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// rows are the items of a table or index in Scan's order: by the hash of the partition key, then by the partition key, and within a
// partition by the sort key. An index can have several items with one key, which are in the order of the table. The order is the
// same in every run.
type rows struct {
	keys   schema
	table  schema  // of an index: the keys of its table
	chunks [][]row // a B-tree of two levels; none is empty
	count  int
	bytes  int
}

// row is an item and the hash of its partition key.
type row struct {
	hash uint64
	item attr.Map
}

const maxChunk = 256

// order says how rows relate to a place: it is negative for those before it.
type order func(*row) int

// behind is the order relative to what follows a place.
func (o order) behind() order { return func(e *row) int { return o(e) - 1 } }

// place is the order relative to a key. Without a sort key it is the whole partition.
func (r *rows) place(k key) order {
	hash := hashOf(k.partition)
	return func(e *row) int {
		if o := cmp.Compare(e.hash, hash); o != 0 {
			return o
		}
		if o := cmp.Compare(keyText(e.item.Get(r.keys.partition)), k.partition); o != 0 || r.keys.sort == "" || k.sort == nil {
			return o
		}
		return compareSort(e.item.Get(r.keys.sort), k.sort)
	}
}

// placeOf is the order relative to an item, of which the keys are enough.
func (r *rows) placeOf(item attr.Map) order {
	at := r.place(r.keys.at(item))
	if r.table.partition == "" {
		return at
	}
	k := r.table.at(item)
	hash := hashOf(k.partition)
	return func(e *row) int {
		if o := at(e); o != 0 {
			return o
		}
		other := r.table.at(e.item)
		return cmp.Or(cmp.Compare(hashOf(other.partition), hash), cmp.Compare(other.partition, k.partition), compareSort(other.sort, k.sort))
	}
}

// position is where a row is, or would be: behind all, its chunk is that after the last one.
type position struct{ chunk, at int }

// seek returns the position of the first row that is not before a place.
func (r *rows) seek(o order) position {
	chunk := sort.Search(len(r.chunks), func(i int) bool { return o(&r.chunks[i][len(r.chunks[i])-1]) >= 0 })
	if chunk == len(r.chunks) {
		return position{chunk, 0}
	}
	rows := r.chunks[chunk]
	return position{chunk, sort.Search(len(rows), func(i int) bool { return o(&rows[i]) >= 0 })}
}

// find returns the row at a place, nil if there is none.
func (r *rows) find(o order) (*row, position) {
	p := r.seek(o)
	if p.chunk < len(r.chunks) {
		if e := &r.chunks[p.chunk][p.at]; o(e) == 0 {
			return e, p
		}
	}
	return nil, p
}

// put stores an item in the place of the one with its key, and returns that one, nil if there was none.
func (r *rows) put(item attr.Map) (old attr.Map) {
	r.count++
	r.bytes += item.Size()
	e, p := r.find(r.placeOf(item))
	if e == nil {
		r.insert(p, row{hashOf(keyText(item.Get(r.keys.partition))), item})
		return nil
	}
	old, e.item = e.item, item
	r.count--
	r.bytes -= old.Size()
	return old
}

func (r *rows) insert(p position, e row) {
	if p.chunk == len(r.chunks) {
		if p.chunk == 0 {
			r.chunks = [][]row{{e}}
			return
		}
		p = position{p.chunk - 1, len(r.chunks[p.chunk-1])}
	}
	rows := slices.Insert(r.chunks[p.chunk], p.at, e)
	r.chunks[p.chunk] = rows
	if half := len(rows) / 2; len(rows) > maxChunk {
		r.chunks[p.chunk] = slices.Clone(rows[:half])
		r.chunks = slices.Insert(r.chunks, p.chunk+1, slices.Clone(rows[half:]))
	}
}

// remove deletes the row at a place and returns its item, nil if there was none.
func (r *rows) remove(o order) (old attr.Map) {
	e, p := r.find(o)
	if e == nil {
		return nil
	}
	old = e.item
	r.count--
	r.bytes -= old.Size()
	rows := slices.Delete(r.chunks[p.chunk], p.at, p.at+1)
	r.chunks[p.chunk] = rows
	if len(rows) == 0 {
		r.chunks = slices.Delete(r.chunks, p.chunk, p.chunk+1)
	}
	return old
}

// from returns the rows from a position on. They must not change meanwhile.
func (r *rows) from(p position) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for ; p.chunk < len(r.chunks); p = (position{p.chunk + 1, 0}) {
			for ; p.at < len(r.chunks[p.chunk]); p.at++ {
				if !yield(&r.chunks[p.chunk][p.at]) {
					return
				}
			}
		}
	}
}

// before returns the rows before a position, backwards. They must not change meanwhile.
func (r *rows) before(p position) iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for {
			for ; p.at > 0; p.at-- {
				if !yield(&r.chunks[p.chunk][p.at-1]) {
					return
				}
			}
			if p.chunk == 0 {
				return
			}
			p = position{p.chunk - 1, len(r.chunks[p.chunk-1])}
		}
	}
}

func (r *rows) all() iter.Seq[*row] { return r.from(position{}) }

// compareSort orders sort keys. Without a sort key both are nil.
func compareSort(a, b attr.Value) int {
	if a == nil {
		return 0
	}
	order, _ := attr.Compare(a, b) // both have the type of the schema
	return order
}

// hashOf is FNV-1a.
func hashOf(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return h
}
