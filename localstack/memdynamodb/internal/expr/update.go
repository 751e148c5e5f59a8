package expr

import (
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Update is a parsed update expression: actions in the order of the text. All of them read the item as it is before the
// update.
type Update struct {
	refs
	actions []action
}

// Creates reports whether the update makes an item where there is none. An update that only removes does not.
func (u *Update) Creates() bool {
	return slices.ContainsFunc(u.actions, func(a action) bool { return a.verb == set || a.verb == add })
}

type verb string

const (
	set    verb = "SET"
	remove verb = "REMOVE"
	add    verb = "ADD"
	del    verb = "DELETE"
)

// action is one change at one path. value is nil for REMOVE.
type action struct {
	verb  verb
	path  Path
	value operand
}

// Operands that only SET has. Their value can be an error, and computeSet computes it.
type (
	sumOperand struct {
		op          string // "+" or "-"
		left, right operand
	}
	ifNotExists struct {
		path     pathOperand
		fallback operand
	}
	listAppend struct{ left, right operand }
)

const updateKind = "UpdateExpression"

func parseUpdate(src string) (*Update, error) {
	u := &Update{}
	err := parse(updateKind, src, func(p *parser) {
		seen := map[verb]bool{}
		for p.peek().kind != tokEnd {
			v := verb(strings.ToUpper(p.peek().text))
			section, ok := map[verb]func(*parser) action{set: setAction, remove: removeAction, add: addAction, del: deleteAction}[v]
			if !ok || p.peek().kind != tokWord {
				p.syntax()
			}
			if seen[v] {
				p.fail("The \"%s\" section can only be used once in an update expression;", v)
			}
			seen[v] = true
			p.advance()
			u.actions = append(u.actions, section(p))
			for p.punct(",") {
				u.actions = append(u.actions, section(p))
			}
		}
		u.refs = p.refs
	})
	return u, err
}

// setAction reads path = value. The value, or each operand of a sum, may be in parentheses.
func setAction(p *parser) action {
	path := p.path()
	p.want("=")
	if t := p.behindParentheses(); t.kind == tokPunct && (t.text == "+" || t.text == "-") {
		return action{set, path, p.sum()} // these parentheses are around the first operand of a sum
	}
	return action{set, path, p.inParentheses(p.sum)}
}

// sum reads an operand, or a sum or difference of two.
func (p *parser) sum() operand {
	left := p.setOperand()
	for _, op := range []string{"+", "-"} {
		if p.punct(op) {
			p.operator()
			return sumOperand{op, left, p.setOperand()}
		}
	}
	return left
}

// setOperand reads a path, a value, if_not_exists(path, operand) or list_append(operand, operand).
func (p *parser) setOperand() operand { return p.inParentheses(p.bareSetOperand) }

func (p *parser) bareSetOperand() operand {
	name, ok := p.call()
	if !ok {
		return p.simple()
	}
	switch name {
	case "if_not_exists", "list_append":
	case "size", "attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains":
		p.fail("The function is not allowed in an update expression; function: %s", name)
	default:
		p.fail("Invalid function name; function: %s", name)
	}
	p.enter()
	args := p.operands(p.setOperand)
	p.depth--
	for _, a := range args {
		if _, nested := a.(listAppend); nested {
			p.misplaced("list_append")
		}
	}
	p.count(name, args, 2)
	if name == "list_append" {
		return listAppend{args[0], args[1]}
	}
	path, ok := args[0].(pathOperand)
	if !ok {
		p.fail("Operator or function requires a document path; operator or function: %s", name)
	}
	return ifNotExists{path, args[1]}
}

func removeAction(p *parser) action {
	return action{remove, p.path(), nil}
}

func addAction(p *parser) action    { return valueAction(p, add) }
func deleteAction(p *parser) action { return valueAction(p, del) }

// valueAction reads a path and a placeholder, the only operand of ADD and DELETE.
func valueAction(p *parser, v verb) action {
	path := p.path()
	if p.peek().kind != tokValue {
		p.syntax()
	}
	return action{v, path, p.simple()}
}

// messageTypes are the names of types in the messages about ADD and DELETE.
var messageTypes = map[string]string{
	"S": "STRING", "N": "NUMBER", "B": "BINARY", "BOOL": "BOOLEAN", "NULL": "NULL",
	"SS": "STRING_SET", "NS": "NUMBER_SET", "BS": "BINARY_SET", "L": "LIST", "M": "MAP",
}

// Bind refuses placeholders with which the update cannot be applied, paths that overlap or conflict, and paths that begin
// with one of the key attributes keys.
func (u *Update) Bind(e *Env, keys ...string) error {
	if err := e.defined(updateKind, &u.refs); err != nil {
		return err
	}
	c := &checker{kind: updateKind, env: e}
	paths := make([]Path, len(u.actions))
	for i, a := range u.actions {
		a.check(c)
		paths[i] = a.path.resolve(e)
		for _, before := range paths[:i] {
			if how := before.clash(paths[i]); how != "" {
				c.fail("Two document paths %s with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", how, before, paths[i])
			}
		}
	}
	if c.err != nil {
		return c.err
	}
	for _, a := range u.actions {
		if name := e.name(a.path[0].Name); slices.Contains(keys, name) {
			return &Error{"One or more parameter values were invalid: Cannot update attribute " + name + ". This attribute is part of the key"}
		}
	}
	return nil
}

func (a action) check(c *checker) {
	switch a.verb {
	case set:
		checkSet(c, a.value)
	case add:
		a.checkLiteral(c, "N", "SS", "NS", "BS")
	case del:
		a.checkLiteral(c, "SS", "NS", "BS")
	}
}

// checkLiteral refuses a value that has none of the types.
func (a action) checkLiteral(c *checker, types ...string) {
	if v := c.literal(a.value); v != nil && !slices.Contains(types, v.Type()) {
		c.fail("Incorrect operand type for operator or function; operator: %s, operand type: %s, typeset: ALLOWED_FOR_%s_OPERAND", a.verb, messageTypes[v.Type()], a.verb)
	}
}

func checkSet(c *checker, o operand) {
	switch o := o.(type) {
	case sumOperand:
		for _, side := range []operand{o.left, o.right} {
			if v := c.literal(side); v != nil && v.Type() != "N" {
				c.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", o.op, v.Type())
			}
			checkSet(c, side)
		}
	case listAppend:
		for _, side := range []operand{o.left, o.right} {
			if v := c.literal(side); v != nil && v.Type() != "L" {
				c.fail("Incorrect operand type for operator or function; operator or function: list_append, operand type: %s", v.Type())
			}
			checkSet(c, side)
		}
	case ifNotExists:
		checkSet(c, o.fallback)
	}
}

func (o sumOperand) value(*Env, attr.Map) attr.Value  { return nil }
func (o ifNotExists) value(*Env, attr.Map) attr.Value { return nil }
func (o listAppend) value(*Env, attr.Map) attr.Value  { return nil }
