package memdynamodb

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// writeInput is PutItem, UpdateItem or DeleteItem.
type writeInput struct {
	changeInput
	ReturnValues                string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
	legacy
}

type writeOutput struct {
	Attributes       *attr.Map         `json:",omitempty"`
	ConsumedCapacity *consumedCapacity `json:",omitempty"`
}

func (s *Server) putItem(c *call, in *writeInput) (any, error) {
	return s.write(c, put, in, "NONE", "ALL_OLD")
}
func (s *Server) deleteItem(c *call, in *writeInput) (any, error) {
	return s.write(c, remove, in, "NONE", "ALL_OLD")
}
func (s *Server) updateItem(c *call, in *writeInput) (any, error) {
	return s.write(c, update, in, "NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
}

func (s *Server) write(c *call, v verb, in *writeInput, returns ...string) (any, error) {
	if err := in.validate(returns); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, err := s.newChange(v, &in.changeInput)
	if err == nil {
		err = ch.fit()
	}
	if err != nil {
		return nil, err
	}
	err = ch.evaluate()
	if err == errCondition {
		u := ch.units()
		c.cost.Units = u.write // nothing was written to an index
		return nil, ch.conditionFailed()
	}
	if err != nil {
		return nil, err
	}
	ch.apply()
	u := ch.units()
	c.cost.Units = u.total()
	return writeOutput{ch.returned(in.ReturnValues), consumed(in.ReturnConsumedCapacity, ch.table, u, false)}, nil
}

func (in *writeInput) validate(returns []string) error {
	all := []string{"ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"}
	switch {
	case in.ReturnValues != "" && !slices.Contains(all, in.ReturnValues):
		return constraint(in.ReturnValues, "returnValues", "Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]")
	case in.ReturnValues != "" && !slices.Contains(returns, in.ReturnValues):
		return validation("Return values set to invalid value")
	}
	if err := validCapacity(in.ReturnConsumedCapacity); err != nil {
		return err
	}
	if m := in.ReturnItemCollectionMetrics; m != "" && m != "NONE" {
		return unimplemented("ReturnItemCollectionMetrics")
	}
	return in.refuse()
}

// conditionFailed is the answer to a single-item call, with the item only if it was asked for and is there.
func (c *change) conditionFailed() error {
	e := *errCondition
	if c.returnOld && c.old != nil {
		e.Fields = map[string]any{"Item": c.old}
	}
	return &e
}

// returned is what ReturnValues asks for; nothing rather than an empty map.
func (c *change) returned(values string) *attr.Map {
	var m attr.Map
	switch values {
	case "ALL_OLD":
		m = c.old
	case "ALL_NEW":
		m = c.new
	case "UPDATED_OLD":
		m = c.touched(c.old)
	case "UPDATED_NEW":
		m = c.touched(c.new)
	}
	if len(m) == 0 {
		return nil
	}
	some := m // m itself would be allocated where nothing is returned too
	return &some
}

// touched is the part of the item that the update was about.
func (c *change) touched(item attr.Map) attr.Map {
	if c.update == nil {
		return nil
	}
	return expr.Project(c.update.Paths(c.env), item)
}
