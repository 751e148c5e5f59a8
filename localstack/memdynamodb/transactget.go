package memdynamodb

import (
	"fmt"
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

type transactGetInput struct {
	TransactItems          []struct{ Get *readInput }
	ReturnConsumedCapacity string
}

type itemResponse struct {
	Item *attr.Map `json:",omitempty"`
}

type transactGetOutput struct {
	Responses        []itemResponse
	ConsumedCapacity []*consumedCapacity `json:",omitempty"`
}

// transactGetItems reads all the items at one instant.
func (s *Server) transactGetItems(c *call, in *transactGetInput) (any, error) {
	n := len(in.TransactItems)
	c.cost.Entries = n
	if err := constraints(validCapacity(in.ReturnConsumedCapacity), validCount(n, "transactItems", maxTransaction)); err != nil {
		return nil, err
	}
	reads := make([]*read, n)
	var names []string
	for i, item := range in.TransactItems {
		if item.Get == nil {
			return nil, required(fmt.Sprintf("transactItems.%d.member.get", i+1))
		}
		var err error
		if reads[i], err = newRead(item.Get); err != nil {
			return nil, err
		}
		names = append(names, item.Get.TableName)
	}
	tables := s.lock(slices.Values(names))
	defer tables.unlock()
	for i, r := range reads {
		t, err := tables.table(in.TransactItems[i].Get.TableName)
		if err != nil {
			return nil, err
		}
		if err := r.fit(t); err != nil {
			return nil, misfit(err, i, n)
		}
		if slices.ContainsFunc(reads[:i], func(o *read) bool { return o.table == r.table && o.key == r.key }) {
			return nil, validation("Transaction request cannot include multiple operations on one item")
		}
	}
	reasons := injectedReasons(c.rule, n)
	for i, r := range reads {
		if reasons[i].Code == "None" && r.table.ongoing[r.key] {
			reasons[i] = conflict()
		}
	}
	if err := cancelled(reasons); err != nil {
		return nil, err
	}
	total := 0
	for _, r := range reads {
		total += r.table.get(r.key).Size()
	}
	if total > maxTransactionBytes { // that AWS refuses it is documented, the text is ours
		return nil, validation("The items of a transaction cannot exceed %d bytes", maxTransactionBytes)
	}
	out := transactGetOutput{Responses: make([]itemResponse, n)}
	var y tally
	for i, r := range reads {
		item, size := r.get()
		out.Responses[i].Item = item
		y.add(r.table, units{read: 2 * readUnits(size, true)})
	}
	c.cost.Units = y.total()
	out.ConsumedCapacity = y.consumed(in.ReturnConsumedCapacity, true)
	return out, nil
}
