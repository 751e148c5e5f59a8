package expr

import (
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// KeyCondition is a parsed key condition expression: the partition key equal to a value and, joined by AND, at most one
// condition on the sort key.
type KeyCondition struct {
	refs
	terms []node
}

// KeyRange is a key condition that is bound to a table: the partition key, and the condition on the sort key, nil for none.
type KeyRange struct {
	Partition attr.Value
	Sort      *SortCondition
}

// SortCondition is a condition on the sort key: a comparison, BETWEEN or begins_with.
type SortCondition struct {
	env    *Env
	term   node
	name   string
	values []attr.Value
}

// Values returns the values that the sort key is compared with.
func (s *SortCondition) Values() []attr.Value {
	if s == nil {
		return nil
	}
	return s.values
}

// Matches reports whether a sort key meets the condition.
func (s *SortCondition) Matches(key attr.Value) bool {
	return s == nil || s.term.eval(s.env, attr.Map{{Name: s.name, Value: key}})
}

// Order is 0 for a sort key that meets the condition, negative for one before those, and positive for one behind them.
func (s *SortCondition) Order(key attr.Value) int {
	if s.Matches(key) {
		return 0
	}
	var first operand
	switch t := s.term.(type) {
	case compareNode:
		switch t.op {
		case "<", "<=":
			return 1
		case ">", ">=":
			return -1
		}
		first = t.right
	case betweenNode:
		first = t.low
	case functionNode: // begins_with
		first = t.args[1]
	}
	order, _ := attr.Compare(key, first.value(s.env, nil)) // both have the key's type
	return order
}

const keyConditionKind = "KeyConditionExpression"

func parseKeyCondition(src string) (*KeyCondition, error) {
	k := &KeyCondition{}
	err := parse(keyConditionKind, src, func(p *parser) {
		root, _ := p.or()
		k.flatten(p, root)
		k.refs = p.refs
	})
	return k, err
}

// flatten collects the terms that AND joins, and refuses what a key condition may not have.
func (k *KeyCondition) flatten(p *parser, n node) {
	switch n := n.(type) {
	case andNode:
		k.flatten(p, n.left)
		k.flatten(p, n.right)
	case orNode:
		p.fail("Invalid operator used in KeyConditionExpression: OR")
	case notNode:
		p.fail("Invalid operator used in KeyConditionExpression: NOT")
	case inNode:
		p.fail("Invalid operator used in KeyConditionExpression: IN")
	case compareNode:
		if n.op == "<>" {
			p.fail("Invalid operator used in KeyConditionExpression: <>")
		}
		if _, reversed := n.left.(valueOperand); reversed {
			mirror := map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
			n = compareNode{mirror[n.op], n.right, n.left}
		}
		k.terms = append(k.terms, n)
	case functionNode:
		if n.name != "begins_with" {
			p.fail("Invalid operator used in KeyConditionExpression: %s", n.name)
		}
		k.terms = append(k.terms, n)
	default:
		k.terms = append(k.terms, n)
	}
}

// Bind applies the condition to a table or index with these keys. sort is "" if it has no sort key. types are the types
// of the keys by name.
func (k *KeyCondition) Bind(e *Env, partition, sort string, types map[string]string) (*KeyRange, error) {
	if err := e.defined(keyConditionKind, &k.refs); err != nil {
		return nil, err
	}
	check := &checker{kind: keyConditionKind, env: e}
	r := &KeyRange{}
	for _, t := range k.terms {
		t.check(check)
		name, values, err := keyTerm(e, t)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if want, ok := types[name]; ok && v.Type() != want {
				return nil, &Error{"One or more parameter values were invalid: Condition parameter type does not match schema type"}
			}
		}
		c, comparison := t.(compareNode)
		switch {
		case name == partition && comparison && c.op == "=" && r.Partition == nil:
			r.Partition = values[0]
		case name == partition && r.Partition == nil:
			return nil, &Error{"Query key condition not supported"}
		case name == sort && sort != "" && r.Sort == nil:
			r.Sort = &SortCondition{e, t, name, values}
		case name == partition || name == sort && sort != "":
			return nil, &Error{"Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key"}
		default:
			if r.Partition == nil && len(k.terms) == 1 {
				return nil, &Error{"Query condition missed key schema element: " + partition}
			}
			missed := sort
			if r.Partition == nil {
				missed = partition
			}
			if missed == "" {
				return nil, &Error{"Query key condition not supported"}
			}
			return nil, &Error{"Query condition missed key schema element: " + missed}
		}
	}
	if check.err != nil {
		return nil, check.err
	}
	if r.Partition == nil {
		return nil, &Error{"Query condition missed key schema element: " + partition}
	}
	return r, nil
}

// keyTerm returns the key attribute of a term, which must be the first operand, and the values that it is compared with.
func keyTerm(e *Env, n node) (string, []attr.Value, error) {
	var operands []operand
	switch n := n.(type) {
	case compareNode:
		operands = []operand{n.left, n.right}
	case betweenNode:
		operands = []operand{n.of, n.low, n.high}
	case functionNode:
		operands = n.args
	}
	key, ok := operands[0].(pathOperand)
	if !ok {
		return "", nil, &Error{"Invalid KeyConditionExpression: Invalid condition in KeyConditionExpression: the key attribute must be the first operand"}
	}
	if len(key.path) > 1 {
		return "", nil, &Error{"Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes"}
	}
	var values []attr.Value
	for _, o := range operands[1:] {
		v, ok := o.(valueOperand)
		if !ok {
			return "", nil, &Error{"Invalid KeyConditionExpression: Invalid operand in KeyConditionExpression: only values can be compared with a key"}
		}
		values = append(values, e.Values.Get(v.name))
	}
	return e.name(key.path[0].Name), values, nil
}
