package memdynamodb

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// change is one action on one item: of a single-item call, or of a transaction.
type change struct {
	table     *table
	key       key
	keyFields attr.Map
	env       *expr.Env
	condition *expr.Condition // nil: none
	put       attr.Map        // the whole new item; nil unless a Put
	update    *expr.Update    // nil unless an Update with an expression
	updates   bool            // an Update, with or without an expression
	deletes   bool
	returnOld bool // ReturnValuesOnConditionCheckFailure is ALL_OLD

	old, new      attr.Map // set by evaluate
	before, after int      // their sizes
}

// changeInput is the part of a request that describes a change, the same in single-item calls and transactions.
type changeInput struct {
	TableName                           string
	Item, Key                           attr.Map
	ConditionExpression                 *string
	UpdateExpression                    *string
	ReturnValuesOnConditionCheckFailure string
	placeholders
}

type verb int

const (
	put verb = iota + 1
	update
	remove
	check
)

// newChange reads what a request wants to change, and refuses what is wrong whatever the table's keys are. The caller holds
// mu.
func (s *Server) newChange(v verb, in *changeInput) (*change, error) {
	c := &change{env: in.env(), deletes: v == remove, updates: v == update}
	switch in.ReturnValuesOnConditionCheckFailure {
	case "ALL_OLD":
		c.returnOld = true
	case "", "NONE":
	default:
		return nil, constraint(in.ReturnValuesOnConditionCheckFailure, "returnValuesOnConditionCheckFailure", "Member must satisfy enum value set: [ALL_OLD, NONE]")
	}
	var err error
	if err = validTable(in.TableName); err != nil {
		return nil, err
	}
	switch {
	case v == put && in.Item == nil:
		return nil, required("item")
	case v != put && in.Key == nil:
		return nil, required("key")
	}
	if err := c.parse(v, in); err != nil {
		return nil, err
	}
	if c.table, err = s.table(in.TableName); err != nil {
		return nil, err
	}
	c.put, c.keyFields = in.Item, in.Key
	if v != put {
		c.put = nil
	}
	return c, nil
}

// fit refuses a change that the table's keys do not allow. In a transaction this is a reason of its own to cancel.
func (c *change) fit() (err error) {
	if c.put == nil {
		if c.key, err = c.table.keys.ofKey(c.keyFields); err != nil || c.update == nil {
			return err
		}
		return c.update.Bind(c.env, c.table.keys.names()...)
	}
	if c.key, err = c.table.keys.ofItem(c.put); err != nil {
		return err
	}
	if err := c.table.checkIndexKeys(c.put); err != nil {
		return err
	}
	if c.put.Size() > maxItem {
		return validation("Item size has exceeded the maximum allowed size")
	}
	return nil
}

func (c *change) parse(v verb, in *changeInput) (err error) {
	var used []expr.Expression
	if in.UpdateExpression != nil && v == update {
		if c.update, err = expr.ParseUpdate(*in.UpdateExpression); err != nil {
			return err
		}
		used = append(used, c.update)
	}
	if in.ConditionExpression != nil {
		if c.condition, err = expr.ParseCondition(*in.ConditionExpression); err != nil {
			return err
		}
		if err := c.condition.Bind(c.env); err != nil {
			return err
		}
		used = append(used, c.condition)
	}
	if c.update != nil {
		if err := c.update.Bind(c.env); err != nil {
			return err
		}
	}
	return in.check(used...)
}

// errCondition is a condition that did not hold; the callers word it.
var errCondition = &awsjson.Error{Code: "ConditionalCheckFailedException", Message: "The conditional request failed"}

// evaluate computes what the change would make of the item. It changes nothing.
func (c *change) evaluate() error {
	c.old = c.table.get(c.key)
	held := c.condition == nil || c.condition.Eval(c.env, c.old)
	err := c.compute()
	c.before, c.after = c.old.Size(), c.new.Size()
	if !held {
		// Computed all the same: a failed write is billed for the item it would have made.
		return errCondition
	}
	if err == nil && c.after > maxItem { // a Put has been refused before
		err = validation("Item size to update has exceeded the maximum allowed size")
	}
	return err
}

func (c *change) compute() (err error) {
	switch {
	case c.put != nil:
		c.new = c.put
	case c.deletes:
	case !c.updates: // a ConditionCheck
		c.new = c.old
	case c.old == nil && c.update != nil && !c.update.Creates():
		// Nothing to remove from: no item is made, and paths into nothing are no error.
	default:
		if c.new = c.old; c.old == nil {
			c.new = c.keyFields // a new item: an update without an expression makes one too
		}
		if c.update == nil {
			return nil
		}
		if c.new, err = c.update.Apply(c.env, c.new); err != nil {
			c.new = nil
			return err
		}
		return c.table.checkIndexKeys(c.new)
	}
	return nil
}

// apply makes the change that evaluate computed.
func (c *change) apply() { c.table.set(c.key, c.new) }

func (c *change) units() units {
	u := units{write: blocks(max(c.before, c.after), writeBlock)}
	c.table.indexUnits(&u, c.old, c.new)
	return u
}

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
	return &m
}

// touched is the part of the item that the update was about.
func (c *change) touched(item attr.Map) attr.Map {
	if c.update == nil {
		return nil
	}
	return expr.Project(c.update.Paths(c.env), item)
}
