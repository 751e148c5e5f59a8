package expr

import (
	"strconv"
	"unicode/utf16"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// operand is what a condition compares: a path, a value or size(path).
type operand interface {
	// value is nil if the item does not have it.
	value(e *Env, item attr.Map) attr.Value
}

type (
	pathOperand  struct{ path Path }
	valueOperand struct{ name string }
	sizeOperand  struct{ of operand }
)

func (o pathOperand) value(e *Env, item attr.Map) attr.Value { return o.path.get(e, item) }

func (o valueOperand) value(e *Env, _ attr.Map) attr.Value { return e.Values.Get(o.name) }

func (o sizeOperand) value(e *Env, item attr.Map) attr.Value {
	n, ok := sizeOf(o.of.value(e, item))
	if !ok {
		return nil
	}
	return attr.Number(strconv.Itoa(n))
}

// sizeOf is the result of size(): the UTF-16 code units of a string, the bytes of a byte string, the members of a set, list
// or map. Numbers, booleans and null have none.
func sizeOf(v attr.Value) (int, bool) {
	switch v := v.(type) {
	case attr.String:
		n := 0
		for _, r := range string(v) {
			n += max(utf16.RuneLen(r), 1) // an invalid byte counts as one
		}
		return n, true
	case attr.Binary:
		return len(v), true
	case attr.StringSet:
		return len(v), true
	case attr.NumberSet:
		return len(v), true
	case attr.BinarySet:
		return len(v), true
	case attr.List:
		return len(v), true
	case attr.Map:
		return len(v), true
	}
	return 0, false
}

// operand reads a path, a value or size(...), with or without parentheses around it.
func (p *parser) operand() operand {
	return p.inParentheses(p.bareOperand)
}

func (p *parser) bareOperand() operand {
	if name, ok := p.call(); ok {
		if name != "size" {
			p.misplaced(name)
		}
		args := p.operands(p.operand)
		p.count(name, args, 1)
		if _, nested := args[0].(sizeOperand); nested {
			p.misplaced(name)
		}
		return sizeOperand{args[0]}
	}
	return p.simple()
}

// simple reads a path or a value.
func (p *parser) simple() operand {
	if t := p.peek(); t.kind == tokValue {
		p.advance()
		use(&p.values, t.text)
		return valueOperand{t.text}
	}
	if p.partiql != nil {
		if v, ok := p.constant(p.partiql); ok {
			return valueOperand{p.literal(p.partiql, v)}
		}
	}
	return pathOperand{p.path()}
}

// count refuses a call that does not have want operands.
func (p *parser) count(function string, args []operand, want int) {
	if len(args) != want {
		p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", function, len(args))
	}
}

// misplaced refuses a function that is not allowed here, or that does not exist.
func (p *parser) misplaced(function string) {
	switch function {
	case "size", "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "if_not_exists", "list_append":
		p.fail("The function is not allowed to be used this way in an expression; function: %s", function)
	}
	p.fail("Invalid function name; function: %s", function)
}
