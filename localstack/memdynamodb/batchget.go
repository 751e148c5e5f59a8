package memdynamodb

import (
	"encoding/json"
	"slices"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

const (
	maxBatchGet   = 100
	maxBatchWrite = 25
)

type batchGetInput struct {
	RequestItems           map[string]*keysAndAttributes
	ReturnConsumedCapacity string
}

type keysAndAttributes struct {
	Keys                     []attr.Map
	ConsistentRead           bool              `json:",omitempty"`
	ProjectionExpression     *string           `json:",omitempty"`
	ExpressionAttributeNames map[string]string `json:",omitempty"`
	AttributesToGet          json.RawMessage   `json:",omitempty"`
}

type batchGetOutput struct {
	Responses        map[string][]attr.Map
	UnprocessedKeys  map[string]*keysAndAttributes
	ConsumedCapacity []*consumedCapacity `json:",omitempty"`
}

// batchGetItem numbers its entries, for faults, by table name and then as they are listed.
func (s *Server) batchGetItem(c *call, in *batchGetInput) (any, error) {
	if err := validCapacity(in.ReturnConsumedCapacity); err != nil {
		return nil, err
	}
	n := 0
	for _, k := range in.RequestItems {
		if k == nil || len(k.Keys) == 0 {
			return nil, required("requestItems.member.keys")
		}
		if k.AttributesToGet != nil {
			return nil, unimplemented("the legacy parameter AttributesToGet")
		}
		n += len(k.Keys)
	}
	c.cost.Entries = n
	switch {
	case n == 0:
		return nil, constraint("{}", "requestItems", "Member must have length greater than or equal to 1")
	case n > maxBatchGet:
		return nil, validation("Too many items requested for the BatchGetItem call")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := batchGetOutput{Responses: map[string][]attr.Map{}, UnprocessedKeys: map[string]*keysAndAttributes{}}
	var y tally
	entry := 0
	for _, name := range sortedNames(in.RequestItems) {
		wanted := in.RequestItems[name]
		reads, err := s.batchReads(name, wanted)
		if err != nil {
			return nil, err
		}
		out.Responses[name] = []attr.Map{}
		for i, r := range reads {
			if c.fails(entry) {
				left := out.UnprocessedKeys[name]
				if left == nil {
					copied := *wanted
					left, copied.Keys = &copied, nil
					out.UnprocessedKeys[name] = left
				}
				left.Keys = append(left.Keys, wanted.Keys[i])
			} else {
				item, size := r.get()
				if item != nil {
					out.Responses[name] = append(out.Responses[name], *item)
				}
				y.add(r.table, units{read: readUnits(size, wanted.ConsistentRead)})
			}
			entry++
		}
	}
	c.cost.Units = y.total()
	out.ConsumedCapacity = y.consumed(in.ReturnConsumedCapacity, false)
	return out, nil
}

func (s *Server) batchReads(tableName string, in *keysAndAttributes) ([]*read, error) {
	reads := make([]*read, len(in.Keys))
	for i, k := range in.Keys {
		r, err := s.newRead(&readInput{tableName, k, in.ProjectionExpression, placeholders{ExpressionAttributeNames: in.ExpressionAttributeNames}})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(reads[:i], func(o *read) bool { return o.key == r.key }) {
			return nil, validation("Provided list of item keys contains duplicates")
		}
		reads[i] = r
	}
	return reads, nil
}

// fails reports whether the call's fault is to fail the entry.
func (c *call) fails(entry int) bool {
	return c.rule != nil && c.rule.Do == fault.FailEntries && c.rule.Hits(entry)
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
