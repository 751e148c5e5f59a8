package memdynamodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
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

var decodeAction = decoder[transactWriteItem]()

type transactWriteOutput struct {
	ConsumedCapacity []*consumedCapacity `json:",omitempty"`
}

// transactWriteItems makes all the changes or none. mu is held from the conditions to the writes, so that no other write
// comes between.
func (s *Server) transactWriteItems(c *call, in *transactWriteInput) (any, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	c.cost.Entries = len(in.TransactItems)
	s.lock()
	defer s.mu.Unlock()
	changes, err := s.changes(in.TransactItems)
	if err == nil {
		err = fit(changes)
	}
	if err != nil {
		return nil, err
	}
	done, err := s.tokens.done(in, s.now())
	if err != nil {
		return nil, err
	}
	if done {
		y := repeated(changes)
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
	tx := s.decide(c, changes)
	s.tokens.add(in, s.now(), tx)
	if c.rule != nil && c.rule.After {
		s.finish(c, tx)
	}
	return transactWriteOutput{y.consumed(in.ReturnConsumedCapacity, true)}, nil
}

func (in *transactWriteInput) validate() error {
	return constraints(
		validLength(in.ClientRequestToken, "clientRequestToken", 36),
		validCapacity(in.ReturnConsumedCapacity),
		validMetrics(in.ReturnItemCollectionMetrics),
		validActions(len(in.TransactItems)),
	)
}

// validActions checks the number of a transaction's actions.
func validActions(n int) error {
	switch {
	case n == 0:
		return constraint("[]", "transactItems", "Member must have length greater than or equal to 1")
	case n > maxTransaction:
		return constraint(fmt.Sprintf("[%d actions]", n), "transactItems", "Member must have length less than or equal to 100")
	}
	return nil
}

// changes reads the actions of a transaction. What is wrong in an expression of any action comes before a table that is missing, and
// that before two actions on one item; of two such expressions the first one counts, as of two tables.
// paritysuite/dynamodb-conformance, validation-ordering/transactions.test.ts. Not done: AWS checks also the members of all actions,
// such as the spelling of a table's name, before the first expression.
func (s *Server) changes(actions []json.RawMessage) ([]*change, error) {
	all := make([]*change, 0, len(actions))
	tables := make([]string, 0, len(actions))
	size := 0
	for i, raw := range actions {
		var a transactWriteItem
		if string(raw) == "null" {
			raw = json.RawMessage("{}")
		}
		if err := decodeAction(raw, &a); err != nil {
			return nil, err
		}
		v, in, err := a.only(i + 1)
		if err != nil {
			return nil, err
		}
		ch, err := readChange(v, in)
		if err != nil {
			return nil, err
		}
		all, tables = append(all, ch), append(tables, in.TableName)
		size += ch.item.Size() + ch.keyFields.Size() + in.ExpressionAttributeValues.Size()
	}
	for i, ch := range all {
		var err error
		if ch.table, err = s.table(tables[i]); err != nil {
			return nil, err
		}
	}
	if size > maxTransactionBytes {
		return nil, validation("Transaction payload size cannot exceed %d bytes", maxTransactionBytes)
	}
	return all, nil
}

// only returns the action of the nth element, which must have exactly one.
func (a *transactWriteItem) only(nth int) (v verb, in *changeInput, err error) {
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
		return 0, nil, required(fmt.Sprintf("transactItems.%d.member.update.updateExpression", nth))
	case v == check && in.ConditionExpression == nil:
		return 0, nil, required(fmt.Sprintf("transactItems.%d.member.conditionCheck.conditionExpression", nth))
	}
	return v, in, nil
}

// fit refuses actions that the keys of their tables do not allow, and two actions on one item. The first such action
// cancels the transaction, and no condition is evaluated.
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

// repeated is what the repetition of a transaction consumes: transactional reads of its items.
func repeated(changes []*change) *tally {
	y := &tally{}
	for _, ch := range changes {
		y.add(ch.table, units{read: 2 * readUnits(ch.table.get(ch.key).Size(), true)})
	}
	return y
}

// reason says why one action cancels its transaction. The code is "None" if it does not.
type reason struct {
	Code    string
	Message string    `json:",omitempty"`
	Item    *attr.Map `json:",omitempty"`
}

var reasonMessages = map[string]string{
	"ConditionalCheckFailed":        "The conditional request failed",
	"TransactionConflict":           "Transaction is ongoing for the item",
	"ProvisionedThroughputExceeded": "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.",
	"ThrottlingError":               "Throughput exceeds the current capacity for one or more global secondary indexes.",
}

// reason evaluates the change.
func (c *change) reason() reason {
	err := c.attempt()
	if err == nil {
		return reason{Code: "None"}
	}
	if err == errConflict {
		return conflict()
	}
	if err == errCondition {
		r := reason{Code: "ConditionalCheckFailed", Message: errCondition.Message}
		if c.returnOld && c.old != nil {
			r.Item = &c.old
		}
		return r
	}
	return invalidReason(err)
}

func invalidReason(err error) reason {
	r := reason{Code: "ValidationError"}
	if e, ok := errors.AsType[*awsjson.Error](toAWS(err)); ok {
		r.Message = e.Message
	}
	return r
}

// injectedReasons returns a reason for each of n actions: that of the fault rule where the rule hits, else None.
func injectedReasons(rule *fault.Rule, n int) []reason {
	reasons := make([]reason, n)
	for i := range reasons {
		reasons[i].Code = "None"
		if rule != nil && rule.Do == fault.FailEntries && rule.Hits(i) {
			code := rule.Code
			if code == "" {
				code = "TransactionConflict"
			}
			reasons[i] = reason{Code: code, Message: reasonMessages[code]}
		}
	}
	return reasons
}

// cancelled returns the error of a transaction, with one reason for each action in the order of the actions. It is nil
// if all reasons are None.
func cancelled(reasons []reason) error {
	codes := make([]string, len(reasons))
	fails := false
	for i, r := range reasons {
		codes[i] = r.Code
		fails = fails || r.Code != "None"
	}
	if !fails {
		return nil
	}
	return &awsjson.Error{
		Code:    "TransactionCanceledException",
		Message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
		// As AWS returned it: https://github.com/boto/boto3/issues/2657
		MessageName: "Message",
		Fields:      map[string]any{"CancellationReasons": reasons},
	}
}

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
	if err := constraints(validCapacity(in.ReturnConsumedCapacity), validActions(n)); err != nil {
		return nil, err
	}
	s.lock()
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
		if slices.ContainsFunc(reads[:i], func(o *read) bool { return o.table == r.table && o.key == r.key }) {
			return nil, validation("Transaction request cannot include multiple operations on one item")
		}
		reads[i] = r
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
