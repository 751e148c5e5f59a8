package memdynamodb

import (
	"encoding/json"
	"fmt"
	"slices"
)

const (
	maxTransaction      = 100
	maxTransactionBytes = 4 << 20
)

type transactWriteInput struct {
	TransactItems               []json.RawMessage
	ClientRequestToken          *string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

type transactWriteItem struct {
	Put, Update, Delete, ConditionCheck *changeInput
}

type transactWriteOutput struct {
	ConsumedCapacity []*consumedCapacity `json:",omitempty"`
}

// transactWriteItems makes all the changes or none. Under mu nothing comes between the conditions and the writes.
func (s *Server) transactWriteItems(c *call, in *transactWriteInput) (any, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	c.cost.Entries = len(in.TransactItems)
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, err := s.changes(in.TransactItems)
	if err == nil {
		err = fit(changes)
	}
	if err != nil {
		return nil, err
	}
	done, err := s.tokens.seen(in, s.now())
	if err != nil {
		return nil, err
	}
	if done {
		y := replayed(changes)
		c.cost.Units = y.total()
		return transactWriteOutput{y.consumed(in.ReturnConsumedCapacity, true)}, nil
	}
	reasons := injectedReasons(c.rule, len(changes))
	for i, ch := range changes {
		if reasons[i].Code == "None" {
			reasons[i] = ch.reason()
		}
	}
	var y tally
	for _, ch := range changes {
		u := ch.units()
		u.write *= 2
		y.add(ch.table, u)
	}
	c.cost.Units = y.total()
	if err := cancelled(reasons); err != nil {
		return nil, err
	}
	for _, ch := range changes {
		ch.apply()
	}
	s.tokens.keep(in, s.now())
	return transactWriteOutput{y.consumed(in.ReturnConsumedCapacity, true)}, nil
}

func (in *transactWriteInput) validate() error {
	switch n := len(in.TransactItems); {
	case n == 0:
		return constraint("[]", "transactItems", "Member must have length greater than or equal to 1")
	case n > maxTransaction:
		return constraint(fmt.Sprintf("[%d actions]", n), "transactItems", "Member must have length less than or equal to 100")
	}
	if t := in.ClientRequestToken; t != nil && (*t == "" || len(*t) > 36) {
		return constraint(*t, "clientRequestToken", "Member must have length between 1 and 36")
	}
	if m := in.ReturnItemCollectionMetrics; m != "" && m != "NONE" {
		return unimplemented("ReturnItemCollectionMetrics")
	}
	return validCapacity(in.ReturnConsumedCapacity)
}

// changes reads the actions of a transaction.
func (s *Server) changes(actions []json.RawMessage) ([]*change, error) {
	all := make([]*change, 0, len(actions))
	size := 0
	for _, raw := range actions {
		var a transactWriteItem
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, err
		}
		v, in, err := a.only()
		if err != nil {
			return nil, err
		}
		ch, err := s.newChange(v, in)
		if err != nil {
			return nil, err
		}
		all = append(all, ch)
		size += ch.put.Size() + ch.keyFields.Size() + in.ExpressionAttributeValues.Size()
	}
	if size > maxTransactionBytes {
		return nil, validation("Transaction payload size cannot exceed %d bytes", maxTransactionBytes)
	}
	return all, nil
}

// fit refuses actions that their tables' keys do not allow. The first of them cancels the transaction alone: no condition
// is looked at. No two actions may be of one item.
func fit(changes []*change) error {
	for i, ch := range changes {
		if err := ch.fit(); err != nil {
			reasons := injectedReasons(nil, len(changes))
			reasons[i] = invalidReason(err)
			return cancelled(reasons)
		}
		if slices.ContainsFunc(changes[:i], func(o *change) bool { return o.table == ch.table && o.key == ch.key }) {
			return validation("Transaction request cannot include multiple operations on one item")
		}
	}
	return nil
}

// only returns the one action that an element must have.
func (a *transactWriteItem) only() (v verb, in *changeInput, err error) {
	n := 0
	for verb, input := range map[verb]*changeInput{put: a.Put, update: a.Update, remove: a.Delete, check: a.ConditionCheck} {
		if input != nil {
			v, in = verb, input
			n++
		}
	}
	switch {
	case n != 1:
		return 0, nil, validation("TransactItems can only contain one of Check, Put, Update or Delete")
	case v == update && in.UpdateExpression == nil:
		return 0, nil, required("transactItems.1.member.update.updateExpression")
	case v == check && in.ConditionExpression == nil:
		return 0, nil, required("transactItems.1.member.conditionCheck.conditionExpression")
	}
	return v, in, nil
}

// replayed is what the repetition of a transaction already made costs: transactional reads of its items.
func replayed(changes []*change) *tally {
	y := &tally{}
	for _, ch := range changes {
		y.add(ch.table, units{read: 2 * readUnits(ch.table.get(ch.key).Size(), true)})
	}
	return y
}
