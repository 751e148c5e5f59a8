package memdynamodb

import (
	"fmt"

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

// transactGetItems reads all the items in one moment.
func (s *Server) transactGetItems(c *call, in *transactGetInput) (any, error) {
	n := len(in.TransactItems)
	c.cost.Entries = n
	if n == 0 || n > maxTransaction {
		return nil, constraint(fmt.Sprintf("[%d actions]", n), "transactItems", "Member must have length between 1 and 100")
	}
	if err := validCapacity(in.ReturnConsumedCapacity); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reads := make([]*read, n)
	for i, item := range in.TransactItems {
		if item.Get == nil {
			return nil, required(fmt.Sprintf("transactItems.%d.member.get", i+1))
		}
		r, err := s.newRead(item.Get)
		if err != nil {
			return nil, err
		}
		for _, o := range reads[:i] {
			if o.table == r.table && o.key == r.key {
				return nil, validation("Transaction request cannot include multiple operations on one item")
			}
		}
		reads[i] = r
	}
	if err := cancelled(injectedReasons(c.rule, n)); err != nil {
		return nil, err
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
