package memdynamodb

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

type batchWriteInput struct {
	RequestItems                map[string][]writeRequest
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

type writeRequest struct {
	PutRequest    *struct{ Item attr.Map } `json:",omitempty"`
	DeleteRequest *struct{ Key attr.Map }  `json:",omitempty"`
}

type batchWriteOutput struct {
	UnprocessedItems map[string][]writeRequest
	ConsumedCapacity []*consumedCapacity `json:",omitempty"`
}

// batchWriteItem checks all the requests before it makes any; each is a write of its own. It numbers its entries, for
// faults, by table name and then as they are listed.
func (s *Server) batchWriteItem(c *call, in *batchWriteInput) (any, error) {
	if err := validCapacity(in.ReturnConsumedCapacity); err != nil {
		return nil, err
	}
	if m := in.ReturnItemCollectionMetrics; m != "" && m != "NONE" {
		return nil, unimplemented("ReturnItemCollectionMetrics")
	}
	n := 0
	for _, requests := range in.RequestItems {
		if len(requests) == 0 {
			return nil, constraint("[]", "requestItems.member", "Member must have length greater than or equal to 1")
		}
		n += len(requests)
	}
	c.cost.Entries = n
	switch {
	case n == 0:
		return nil, constraint("{}", "requestItems", "Member must have length greater than or equal to 1")
	case n > maxBatchWrite:
		return nil, validation("Too many items requested for the BatchWriteItem call")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := sortedNames(in.RequestItems)
	var all []*change
	for _, name := range names {
		changes, err := s.batchChanges(name, in.RequestItems[name])
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	out := batchWriteOutput{UnprocessedItems: map[string][]writeRequest{}}
	var y tally
	entry := 0
	for _, name := range names {
		for _, request := range in.RequestItems[name] {
			ch := all[entry]
			if c.fails(entry) {
				out.UnprocessedItems[name] = append(out.UnprocessedItems[name], request)
			} else {
				if err := ch.evaluate(); err != nil {
					return nil, err
				}
				ch.apply()
				y.add(ch.table, ch.units())
			}
			entry++
		}
	}
	c.cost.Units = y.total()
	out.ConsumedCapacity = y.consumed(in.ReturnConsumedCapacity, false)
	return out, nil
}

func (s *Server) batchChanges(tableName string, requests []writeRequest) ([]*change, error) {
	var changes []*change
	for _, r := range requests {
		var ch *change
		var err error
		switch {
		case (r.PutRequest == nil) == (r.DeleteRequest == nil):
			return nil, validation("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
		case r.PutRequest != nil:
			ch, err = s.newChange(put, &changeInput{TableName: tableName, Item: r.PutRequest.Item})
		default:
			ch, err = s.newChange(remove, &changeInput{TableName: tableName, Key: r.DeleteRequest.Key})
		}
		if err == nil {
			err = ch.fit()
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(changes, func(o *change) bool { return o.key == ch.key }) {
			return nil, validation("Provided list of item keys contains duplicates")
		}
		changes = append(changes, ch)
	}
	return changes, nil
}
