package expr

import (
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

type (
	orNode      struct{ left, right node }
	andNode     struct{ left, right node }
	notNode     struct{ of node }
	compareNode struct {
		op          string
		left, right operand
	}
	betweenNode struct{ of, low, high operand }
	inNode      struct {
		of   operand
		list []operand
	}
	functionNode struct {
		name string
		args []operand
	}
)

func (n orNode) eval(e *Env, item attr.Map) bool {
	return n.left.eval(e, item) || n.right.eval(e, item)
}
func (n andNode) eval(e *Env, item attr.Map) bool {
	return n.left.eval(e, item) && n.right.eval(e, item)
}
func (n notNode) eval(e *Env, item attr.Map) bool { return !n.of.eval(e, item) }

func (n compareNode) eval(e *Env, item attr.Map) bool {
	return compare(n.op, n.left.value(e, item), n.right.value(e, item))
}

// compare is false for a missing operand and for operands of different types, but for <>: whatever is not equal, a
// missing attribute too, is true there.
func compare(op string, a, b attr.Value) bool {
	switch op {
	case "=":
		return a != nil && b != nil && attr.Equal(a, b)
	case "<>":
		return a == nil || b == nil || !attr.Equal(a, b)
	}
	if a == nil || b == nil {
		return false
	}
	order, ok := attr.Compare(a, b)
	if !ok {
		return false
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (n betweenNode) eval(e *Env, item attr.Map) bool {
	v := n.of.value(e, item)
	return compare(">=", v, n.low.value(e, item)) && compare("<=", v, n.high.value(e, item))
}

func (n inNode) eval(e *Env, item attr.Map) bool {
	v := n.of.value(e, item)
	for _, o := range n.list {
		if compare("=", v, o.value(e, item)) {
			return true
		}
	}
	return false
}

func (n functionNode) eval(e *Env, item attr.Map) bool {
	v := n.args[0].value(e, item)
	switch n.name {
	case "attribute_exists":
		return v != nil
	case "attribute_not_exists":
		return v == nil
	}
	arg := n.args[1].value(e, item)
	if v == nil || arg == nil {
		return false
	}
	switch n.name {
	case "attribute_type":
		want, ok := arg.(attr.String)
		return ok && v.Type() == string(want)
	case "begins_with":
		return beginsWith(v, arg)
	default: // contains
		return attr.Contains(v, arg)
	}
}

func beginsWith(v, prefix attr.Value) bool {
	switch v := v.(type) {
	case attr.String:
		p, ok := prefix.(attr.String)
		return ok && strings.HasPrefix(string(v), string(p))
	case attr.Binary:
		p, ok := prefix.(attr.Binary)
		return ok && strings.HasPrefix(string(v), string(p))
	}
	return false
}
