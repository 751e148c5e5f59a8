package memdynamodb

import (
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// readInput is the part of a request that describes the read of one item.
type readInput struct {
	TableName            string
	Key                  attr.Map
	ProjectionExpression *string
	placeholders
}

type getItemInput struct {
	readInput
	ConsistentRead         bool
	ReturnConsumedCapacity string
}

type getItemOutput struct {
	Item             *attr.Map         `json:",omitempty"`
	ConsumedCapacity *consumedCapacity `json:",omitempty"`
}

// read is the read of one item.
type read struct {
	table     *table
	key       key
	keyFields attr.Map
	paths     []expr.Path // the parts of the item to return; nil: the whole item
	nested    []string    // the attributes into which there are paths
}

// newRead refuses what is wrong in every table. [read.fit] refuses what is wrong in one.
func newRead(in *readInput) (*read, error) {
	if err := validTable(in.TableName); err != nil {
		return nil, err
	}
	if in.Key == nil {
		return nil, required("key")
	}
	paths, nested, err := in.paths(in.ProjectionExpression)
	return &read{keyFields: in.Key, paths: paths, nested: nested}, err
}

// fit sets the table of the read, and its key.
func (r *read) fit(t *table) (err error) {
	r.table = t
	if err := t.checkNested(r.nested); err != nil {
		return err
	}
	r.key, err = t.keys.ofKey(r.keyFields)
	return err
}

// paths parses a projection expression, and returns also the attributes into which it has paths. It must use all the placeholders:
// a read has no other expression.
func (p *placeholders) paths(expression *string) (paths []expr.Path, nested []string, err error) {
	if expression == nil {
		return nil, nil, p.check()
	}
	x, err := expr.ParseProjection(*expression)
	if err != nil {
		return nil, nil, err
	}
	if paths, err = x.Bind(p.env()); err != nil {
		return nil, nil, err
	}
	return paths, p.env().Nested(x), p.check(x)
}

// get returns the part of the item that was asked for, nil if there is no item, and the size of the whole item, which is
// what DynamoDB bills.
func (r *read) get() (part *attr.Map, size int) {
	item := r.table.get(r.key)
	if item == nil {
		return nil, 0
	}
	part = &item
	if r.paths != nil {
		m := expr.Project(r.paths, item)
		part = &m
	}
	return part, item.Size()
}

func (s *Server) getItem(c *call, in *getItemInput) (any, error) {
	var errKey error
	if in.Key == nil {
		errKey = required("key")
	}
	if err := constraints(validCapacity(in.ReturnConsumedCapacity), validTable(in.TableName), errKey); err != nil {
		return nil, err
	}
	r, err := newRead(&in.readInput)
	if err != nil {
		return nil, err
	}
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	if err := r.fit(t); err != nil {
		return nil, err
	}
	item, size := r.get()
	u := units{read: readUnits(size, in.ConsistentRead)}
	c.cost.Units = u.total()
	return getItemOutput{item, consumed(in.ReturnConsumedCapacity, r.table, u, false)}, nil
}
