package memdynamodb

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// units are the capacity units that an operation consumed of one table.
type units struct {
	read, write float64
	indexes     map[string]float64 // by name, in addition to read and write
}

func (u *units) add(o units) {
	u.read += o.read
	u.write += o.write
	for name, n := range o.indexes {
		u.index(name, n)
	}
}

func (u *units) index(name string, n float64) {
	if u.indexes == nil {
		u.indexes = map[string]float64{}
	}
	u.indexes[name] += n
}

func (u *units) total() float64 {
	sum := u.read + u.write
	for _, n := range u.indexes {
		sum += n
	}
	return sum
}

// blocks is how many blocks a size fills, at least 1.
func blocks(size, block int) float64 { return float64(max(1, (size+block-1)/block)) }

// writeUnits are 1 for each KB of the item before or after the write, whichever is larger; at least 1.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
func writeUnits(before, after attr.Map) float64 {
	return blocks(max(before.Size(), after.Size()), 1<<10)
}

// readUnits are 1 for each 4 KB of a strongly consistent read, at least 1, and half of it for an eventually consistent
// read.
func readUnits(size int, consistent bool) float64 {
	n := blocks(size, 4<<10)
	if !consistent {
		n /= 2
	}
	return n
}

type capacity struct {
	CapacityUnits      float64
	ReadCapacityUnits  float64 `json:",omitempty"`
	WriteCapacityUnits float64 `json:",omitempty"`
}

type consumedCapacity struct {
	TableName string
	capacity
	Table                  *capacity           `json:",omitempty"`
	GlobalSecondaryIndexes map[string]capacity `json:",omitempty"`
	LocalSecondaryIndexes  map[string]capacity `json:",omitempty"`
}

// consumed is the ConsumedCapacity of one table, nil if the request asked for none. kinds says whether units are also
// given by kind, read and write. DynamoDB does so only for transactions.
func consumed(asked string, t *table, u units, kinds bool) *consumedCapacity {
	if asked != "TOTAL" && asked != "INDEXES" {
		return nil
	}
	c := &consumedCapacity{TableName: t.TableName, capacity: capacity{CapacityUnits: u.total()}}
	if kinds {
		c.ReadCapacityUnits, c.WriteCapacityUnits = u.read, u.total()-u.read
	}
	if asked != "INDEXES" {
		return c
	}
	c.Table = &capacity{CapacityUnits: u.read + u.write}
	if kinds {
		c.Table.ReadCapacityUnits, c.Table.WriteCapacityUnits = u.read, u.write
	}
	for name, n := range u.indexes {
		of := &c.GlobalSecondaryIndexes
		if ix := t.index(name); ix != nil && ix.local {
			of = &c.LocalSecondaryIndexes
		}
		if *of == nil {
			*of = map[string]capacity{}
		}
		(*of)[name] = capacity{CapacityUnits: n}
	}
	return c
}

// tally is the consumption of an operation on several tables. The tables are in the order in which the operation came to them.
type tally struct {
	tables []*table
	units  []units
}

func (y *tally) add(t *table, u units) {
	i := slices.Index(y.tables, t)
	if i < 0 {
		i = len(y.tables)
		y.tables = append(y.tables, t)
		y.units = append(y.units, units{})
	}
	y.units[i].add(u)
}

func (y *tally) total() (sum float64) {
	for i := range y.units {
		sum += y.units[i].total()
	}
	return sum
}

func (y *tally) consumed(asked string, kinds bool) []*consumedCapacity {
	if asked != "TOTAL" && asked != "INDEXES" {
		return nil
	}
	var all []*consumedCapacity
	for i, t := range y.tables {
		all = append(all, consumed(asked, t, y.units[i], kinds))
	}
	return all
}
