package expr

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// checker checks the values that an expression is bound to, and has the first error.
type checker struct {
	kind string
	env  *Env
	err  error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = &Error{"Invalid " + c.kind + ": " + fmt.Sprintf(format, args...)}
	}
}

// literal returns the value of an operand that is a placeholder. It is nil for a path, whose value is known only with the
// item.
func (c *checker) literal(o operand) attr.Value {
	if v, ok := o.(valueOperand); ok {
		return c.env.Values.Get(v.name)
	}
	return nil
}

// types refuses a literal that has none of the types.
func (c *checker) types(function string, o operand, types ...string) {
	if s, ok := o.(sizeOperand); ok {
		c.types("size", s.of, "S", "B", "SS", "NS", "BS", "L", "M")
		if !slices.Contains(types, "N") {
			c.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: N", function)
		}
		return
	}
	if v := c.literal(o); v != nil && !slices.Contains(types, v.Type()) {
		c.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", function, v.Type())
	}
}

func (n orNode) check(c *checker)  { n.left.check(c); n.right.check(c) }
func (n andNode) check(c *checker) { n.left.check(c); n.right.check(c) }
func (n notNode) check(c *checker) { n.of.check(c) }

// distinct refuses to compare a path with itself.
func (c *checker) distinct(op string, first operand, rest ...operand) {
	p, ok := first.(pathOperand)
	if !ok {
		return
	}
	for _, o := range rest {
		if q, ok := o.(pathOperand); ok && reflect.DeepEqual(p.path.resolve(c.env), q.path.resolve(c.env)) {
			c.fail("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", op, p.path.resolve(c.env))
		}
	}
}

func (n compareNode) check(c *checker) {
	types := []string{"S", "N", "B"}
	if n.op == "=" || n.op == "<>" {
		types = attr.TypeNames
	}
	c.types(n.op, n.left, types...)
	c.types(n.op, n.right, types...)
	c.distinct(n.op, n.left, n.right)
}

func (n betweenNode) check(c *checker) {
	for _, o := range []operand{n.of, n.low, n.high} {
		c.types("BETWEEN", o, "S", "N", "B")
	}
	low, high := c.literal(n.low), c.literal(n.high)
	if low == nil || high == nil {
		return
	}
	bounds := func() string {
		return fmt.Sprintf("lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s", describe(low), describe(high))
	}
	switch order, ok := attr.Compare(low, high); {
	case !ok:
		c.fail("The BETWEEN operator requires same data type for lower and upper bounds; %s", bounds())
	case order > 0:
		c.fail("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; %s", bounds())
	}
}

// describe is a scalar in the form of messages: {N:5}.
func describe(v attr.Value) string {
	return strings.NewReplacer(`"`, "").Replace(string(attr.Append(nil, v)))
}

func (n inNode) check(c *checker) {
	c.types("IN", n.of, attr.TypeNames...)
	for _, o := range n.list {
		c.types("IN", o, attr.TypeNames...)
	}
	c.distinct("IN", n.of, n.list...)
}

func (n functionNode) check(c *checker) {
	switch n.name {
	case "begins_with":
		c.types(n.name, n.args[0], "S", "B")
		c.types(n.name, n.args[1], "S", "B")
		c.distinct(n.name, n.args[0], n.args[1])
	case "contains":
		c.types(n.name, n.args[0], "S", "B", "SS", "NS", "BS", "L")
		c.types(n.name, n.args[1], attr.TypeNames...)
		c.distinct(n.name, n.args[0], n.args[1])
	case "attribute_type":
		c.types(n.name, n.args[1], "S")
		if t, ok := c.literal(n.args[1]).(attr.String); ok && !slices.Contains(attr.TypeNames, string(t)) {
			c.fail("Invalid attribute type name found; type: %s, valid types: {%s}", t, strings.Join(attr.TypeNames, ","))
		}
	}
}

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

// compare is false for a missing operand and for operands of different types. Only <> is true for them.
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
