package memdynamodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/internal/injector"
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

// transactWriteItems makes all the changes or none. Its tables are locked from the conditions to the writes, so that no other write
// comes between.
func (s *Server) transactWriteItems(c *call, in *transactWriteInput) (any, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	c.cost.Entries = len(in.TransactItems)
	changes, err := in.changes()
	if err != nil {
		return nil, err
	}
	y, tx, err := s.transact(c, in, changes)
	if err != nil {
		return nil, err
	}
	if tx != nil && c.rule != nil && c.rule.After {
		s.finish(c, tx)
	}
	return transactWriteOutput{y}, nil
}

// transact decides a transaction. A repetition with the same token has none.
func (s *Server) transact(c *call, in *transactWriteInput, changes []*change) ([]*consumedCapacity, *transaction, error) {
	var names []string
	for _, ch := range changes {
		names = append(names, ch.tableName)
	}
	tables := s.lock(slices.Values(names))
	defer tables.unlock()
	s.transactions.Lock()
	defer s.transactions.Unlock()
	if err := fit(changes, tables); err != nil {
		return nil, nil, err
	}
	now := s.now()
	done, err := s.tokens.done(in, now)
	if err != nil {
		return nil, nil, err
	}
	if done {
		y := repeated(changes)
		c.cost.Units = y.total()
		return y.consumed(in.ReturnConsumedCapacity, true), nil, nil
	}
	reasons := injectedReasons(c.rule, len(changes))
	for i, ch := range changes {
		if reasons[i].Code == "None" {
			var empty error
			if reasons[i], empty = ch.reason(); empty != nil {
				return nil, nil, empty
			}
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
		return nil, nil, err
	}
	tx := s.decide(c, changes)
	s.tokens.add(in, now, tx)
	return y.consumed(in.ReturnConsumedCapacity, true), tx, nil
}

func (in *transactWriteInput) validate() error {
	return constraints(
		validLength(in.ClientRequestToken, "clientRequestToken", 36),
		validCapacity(in.ReturnConsumedCapacity),
		validMetrics(in.ReturnItemCollectionMetrics),
		validCount(len(in.TransactItems), "transactItems", maxTransaction),
	)
}

// validCount checks the number of a transaction's actions, or of a batch's statements.
func validCount(n int, member string, most int) error {
	switch {
	case n == 0:
		return constraint("[]", member, "Member must have length greater than or equal to 1")
	case n > most:
		return constraint(fmt.Sprintf("[%d members]", n), member, fmt.Sprintf("Member must have length less than or equal to %d", most)) // AWS shows them all
	}
	return nil
}

// changes reads the actions of a transaction. What is wrong in an expression of any action comes before a table that is missing, and
// that before two actions on one item; of two such expressions the first one counts, as of two tables.
// paritysuite/dynamodb-conformance, validation-ordering/transactions.test.ts. Not done: AWS checks also the members of all actions,
// such as the spelling of a table's name, before the first expression.
func (in *transactWriteInput) changes() ([]*change, error) {
	all := make([]*change, 0, len(in.TransactItems))
	for i, raw := range in.TransactItems {
		var a transactWriteItem
		if string(raw) == "null" {
			raw = json.RawMessage("{}")
		}
		if err := decodeAction(raw, &a); err != nil {
			return nil, err
		}
		v, input, err := a.only(i + 1)
		if err != nil {
			return nil, err
		}
		ch, err := readChange(v, input)
		if err != nil {
			return nil, err
		}
		all = append(all, ch)
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

// fit refuses actions on tables that are not there, or whose keys do not allow them, and two actions on one item. The first action
// that the keys do not allow cancels the transaction, and no condition is evaluated.
func fit(changes []*change, tables locked) (err error) {
	size := 0
	for _, ch := range changes {
		if ch.table, err = tables.table(ch.tableName); err != nil {
			return err
		}
		size += ch.item.Size() + ch.keyFields.Size() + ch.env.Values.Size()
	}
	if size > maxTransactionBytes {
		return validation("Transaction payload size cannot exceed %d bytes", maxTransactionBytes)
	}
	for i, ch := range changes {
		if err := ch.fit(); err != nil {
			return misfit(err, i, len(changes))
		}
		if slices.ContainsFunc(changes[:i], func(o *change) bool { return o.table == ch.table && o.key == ch.key }) {
			return validation("Transaction request cannot include multiple operations on one item")
		}
	}
	return nil
}

// misfit is the error of a transaction of n actions, one of which does not fit its table: that is a reason to cancel, but for an empty key.
func misfit(err error, action, n int) error {
	if _, empty := errors.AsType[*emptyKey](err); empty {
		return err
	}
	reasons := injectedReasons(nil, n)
	reasons[action] = invalidReason(err)
	return cancelled(reasons)
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

// reason evaluates the change. Its error refuses the whole transaction.
func (c *change) reason() (reason, error) {
	err := c.attempt()
	if err == nil {
		return reason{Code: "None"}, nil
	}
	if err == errConflict {
		return conflict(), nil
	}
	if _, empty := errors.AsType[*emptyKey](err); empty {
		return reason{}, err
	}
	if err == errCondition {
		r := reason{Code: "ConditionalCheckFailed", Message: errCondition.Message}
		if c.returnOld && c.old != nil {
			r.Item = &c.old
		}
		return r, nil
	}
	return invalidReason(err), nil
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
		if rule != nil && rule.Do == fault.FailEntries && injector.Hits(rule, i) {
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
