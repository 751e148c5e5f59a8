package expr

import (
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Condition is a parsed condition or filter expression.
type Condition struct {
	refs
	kind  string
	root  node
	paths []Path
}

// node is a part of a condition that is true or false for an item.
type node interface {
	eval(e *Env, item attr.Map) bool
	// check refuses values with types that cannot be right here. Parsing cannot do this: it does not know the values.
	check(c *checker)
}

// Eval reports whether the condition is true for the item. A nil item is no item. Call Bind with e first.
func (c *Condition) Eval(e *Env, item attr.Map) bool { return c.root.eval(e, item) }

// Bind refuses placeholders with which the condition cannot be evaluated.
func (c *Condition) Bind(e *Env) error {
	if err := e.defined(c.kind, &c.refs); err != nil {
		return err
	}
	check := &checker{kind: c.kind, env: e}
	c.root.check(check)
	return check.err
}

// parseCondition parses a condition or filter. NOT binds before AND, and AND before OR.
func parseCondition(kind, src string) (*Condition, error) {
	c := &Condition{kind: kind}
	err := parse(kind, src, func(p *parser) {
		c.root, _ = p.or()
		c.refs, c.paths = p.refs, p.paths
	})
	return c, err
}

// The methods or, and, not and primary also report whether they read a condition in parentheses and nothing else.
func (p *parser) or() (node, bool) {
	left, parens := p.and()
	for p.keyword("OR") {
		p.operator()
		right, _ := p.and()
		left, parens = orNode{left, right}, false
	}
	return left, parens
}

func (p *parser) and() (node, bool) {
	left, parens := p.not()
	for p.keyword("AND") {
		p.operator()
		right, _ := p.not()
		left, parens = andNode{left, right}, false
	}
	return left, parens
}

func (p *parser) not() (node, bool) {
	negate, any := false, false
	for p.keyword("NOT") { // in a loop, so that many of them do not exhaust the stack
		p.operator()
		negate, any = !negate, true
	}
	n, parens := p.primary()
	if negate {
		n = notNode{n}
	}
	return n, parens && !any
}

func (p *parser) primary() (node, bool) {
	// Parentheses are around a condition or around an operand of a comparison. The token behind them shows which.
	if t := p.peek(); t.kind == tokPunct && t.text == "(" && !p.compares(p.behindParentheses()) {
		p.advance()
		p.enter()
		n, parens := p.or()
		p.depth--
		p.want(")")
		if parens {
			p.fail("The expression has redundant parentheses;")
		}
		return n, true
	}
	if name, ok := p.call(); ok {
		if name == "size" {
			p.pos -= 2 // back: it is an operand, as in size(a) > :n
			p.operators--
		} else {
			n := p.predicate(name)
			if p.compares(p.peek()) {
				p.misplaced(name) // a condition is not an operand
			}
			return n, false
		}
	}
	return p.comparison(), false
}

func (p *parser) comparison() node {
	left := p.operand()
	t := p.peek()
	switch {
	case t.is("BETWEEN"):
		p.advance()
		p.operator()
		low := p.operand()
		if !p.keyword("AND") {
			p.syntax()
		}
		return betweenNode{left, low, p.operand()}
	case t.is("IN"):
		p.advance()
		p.operator()
		var list []operand
		if p.partiql != nil && p.punct("[") {
			list = p.operandsTo("]", p.operand)
		} else {
			p.want("(")
			list = p.operands(p.operand)
		}
		if len(list) > maxIn {
			p.fail("Incorrect number of operands for operator or function; operator or function: IN, number of operands: %d", len(list)+1)
		}
		return inNode{left, list}
	case p.partiql != nil && p.keyword("IS"):
		p.operator()
		return missing(p, left)
	case t.kind == tokPunct && comparator(t.text):
		p.advance()
		p.operator()
		return compareNode{t.text, left, p.operand()}
	}
	if _, ok := left.(sizeOperand); ok && (t.kind == tokEnd || t.is("AND") || t.is("OR")) {
		p.misplaced("size")
	}
	p.syntax()
	return nil
}

// compares reports whether the token is a comparator, or a keyword that compares operands.
func (p *parser) compares(t token) bool {
	return t.is("IN") || t.is("BETWEEN") || p.partiql != nil && t.is("IS") || t.kind == tokPunct && comparator(t.text)
}

func comparator(s string) bool {
	switch s {
	case "=", "<>", "<", "<=", ">", ">=":
		return true
	}
	return false
}

// predicate reads the operands of a function that is a condition.
func (p *parser) predicate(name string) node {
	want := 2
	switch name {
	case "attribute_exists", "attribute_not_exists":
		want = 1
	case "attribute_type", "begins_with", "contains":
	default:
		p.misplaced(name)
	}
	args := p.operands(p.operand)
	p.count(name, args, want)
	if want == 1 {
		if _, ok := args[0].(pathOperand); !ok {
			p.fail("Operator or function requires a document path; operator or function: %s", name)
		}
	}
	if name == "attribute_type" {
		if _, ok := args[1].(valueOperand); !ok {
			p.fail("The function requires the type as an expression attribute value; function: %s", name)
		}
	}
	return functionNode{name, args}
}

// Attributes returns the attributes with which the paths of the condition begin, each once.
func (c *Condition) Attributes(e *Env) []string {
	var names []string
	for _, p := range c.paths {
		use(&names, e.name(p[0].Name))
	}
	return names
}
