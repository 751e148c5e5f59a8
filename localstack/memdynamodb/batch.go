package memdynamodb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

const (
	maxBatchGet   = 100
	maxBatchWrite = 25
	// maxBatchBytes is what a BatchGetItem returns at most. By AWS's example 52 items of 300 KB are within its 16 MB, and no more:
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
	maxBatchBytes = 16_000_000
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
}

type batchGetOutput struct {
	Responses        map[string][]attr.Map
	UnprocessedKeys  map[string]*keysAndAttributes
	ConsumedCapacity []*consumedCapacity `json:",omitempty"`
}

// batchGetItem reads all the items at one instant. Fault rules count the entries by table name, and within a table in
// the order of the request.
func (s *Server) batchGetItem(c *call, in *batchGetInput) (any, error) {
	shown := func(string) string {
		b, _ := json.Marshal(in.RequestItems) // was decoded from JSON
		return string(b)
	}
	if err := constraints(validTables(maps.Keys(in.RequestItems), shown), validCapacity(in.ReturnConsumedCapacity)); err != nil {
		return nil, err
	}
	switch {
	case in.RequestItems == nil:
		return nil, required("requestItems")
	case len(in.RequestItems) == 0:
		return nil, validation("1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	n := 0
	for name, k := range in.RequestItems {
		switch {
		case k == nil || k.Keys == nil:
			return nil, required("requestItems." + name + ".member.keys")
		case len(k.Keys) == 0:
			return nil, validation("1 validation error detected: Value at 'RequestItems.%s.member.Keys' failed to satisfy constraint: Member must have length greater than or equal to 1", name)
		case len(k.Keys) > maxBatchGet:
			return nil, validation("1 validation error detected: Value at 'RequestItems.%s.member.Keys' failed to satisfy constraint: Member must have length less than or equal to 100", name)
		}
		n += len(k.Keys)
	}
	c.cost.Entries = n
	if n > maxBatchGet {
		return nil, validation("Too many items requested for the BatchGetItem call")
	}
	tables := s.lock(maps.Keys(in.RequestItems))
	defer tables.unlock()
	out := batchGetOutput{Responses: map[string][]attr.Map{}, UnprocessedKeys: map[string]*keysAndAttributes{}}
	var y tally
	entry, left := 0, maxBatchBytes // left is 0 once an item did not fit: AWS reads no further
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		wanted := in.RequestItems[name]
		reads, err := tables.batchReads(name, wanted)
		if err != nil {
			return nil, err
		}
		out.Responses[name] = []attr.Map{}
		for i, r := range reads {
			item, size := r.get()
			fails := c.fails(entry)
			if !fails && size > left {
				left = 0
			}
			if fails || left == 0 {
				unprocessed := out.UnprocessedKeys[name]
				if unprocessed == nil {
					copied := *wanted
					unprocessed, copied.Keys = &copied, nil
					out.UnprocessedKeys[name] = unprocessed
				}
				unprocessed.Keys = append(unprocessed.Keys, wanted.Keys[i])
			} else {
				left -= size
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

func (l locked) batchReads(tableName string, in *keysAndAttributes) ([]*read, error) {
	reads := make([]*read, len(in.Keys))
	for i, k := range in.Keys {
		r, err := newRead(&readInput{tableName, k, in.ProjectionExpression, placeholders{ExpressionAttributeNames: in.ExpressionAttributeNames}})
		if err != nil {
			return nil, err
		}
		t, err := l.table(tableName)
		if err == nil {
			err = r.fit(t)
		}
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

// batchWriteItem checks all the requests before it performs the first. Fault rules count the entries as in batchGetItem.
func (s *Server) batchWriteItem(c *call, in *batchWriteInput) (any, error) {
	if err := constraints(validCapacity(in.ReturnConsumedCapacity), validMetrics(in.ReturnItemCollectionMetrics)); err != nil {
		return nil, err
	}
	shown := func(name string) string { return "{" + name + "=[...]}" } // AWS shows the requests too
	if err := validTables(maps.Keys(in.RequestItems), shown); err != nil {
		return nil, err
	}
	switch {
	case in.RequestItems == nil:
		return nil, required("requestItems")
	case len(in.RequestItems) == 0:
		return nil, validation("The requestItems parameter is required for BatchWriteItem")
	}
	n := 0
	for name, requests := range in.RequestItems {
		if len(requests) == 0 || len(requests) > maxBatchWrite {
			shown := "[]"
			if len(requests) > 0 {
				shown = fmt.Sprintf("[%d requests]", len(requests)) // AWS shows them all
			}
			return nil, constraint("{"+name+"="+shown+"}", "requestItems",
				"Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]")
		}
		n += len(requests)
	}
	c.cost.Entries = n
	if n > maxBatchWrite {
		return nil, validation("Too many items requested for the BatchWriteItem call")
	}
	tables := s.lock(maps.Keys(in.RequestItems))
	defer tables.unlock()
	names := slices.Sorted(maps.Keys(in.RequestItems))
	var all []*change
	for _, name := range names {
		changes, err := tables.batchChanges(name, in.RequestItems[name])
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
			err := ch.attempt()
			switch {
			case c.fails(entry) || err == errConflict: // the operation has no error for a conflict
				out.UnprocessedItems[name] = append(out.UnprocessedItems[name], request)
			case err != nil:
				return nil, err
			default:
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

func (l locked) batchChanges(tableName string, requests []writeRequest) ([]*change, error) {
	var changes []*change
	for _, r := range requests {
		var ch *change
		var err error
		switch {
		case (r.PutRequest == nil) == (r.DeleteRequest == nil):
			return nil, validation("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
		case r.PutRequest != nil:
			ch, err = readChange(put, &changeInput{TableName: tableName, Item: r.PutRequest.Item})
		default:
			ch, err = readChange(remove, &changeInput{TableName: tableName, Key: r.DeleteRequest.Key})
		}
		if err == nil {
			ch.table, err = l.table(tableName)
		}
		if err == nil && ch.verb == put && !ch.table.keys.fits(ch.item) {
			err = validation("The provided key element does not match the schema") // which PutItem says more precisely
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
