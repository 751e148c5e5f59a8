package expr

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// messageTypes are the names of types in the messages about ADD, DELETE and list_append.
var messageTypes = map[string]string{
	"S": "STRING", "N": "NUMBER", "B": "BINARY", "BOOL": "BOOLEAN", "NULL": "NULL",
	"SS": "STRING_SET", "NS": "NUMBER_SET", "BS": "BINARY_SET", "L": "LIST", "M": "MAP",
}

// Bind refuses an environment with which the update cannot be applied, paths that stand in each other's way, and paths
// that begin with one of the table's key attributes.
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
		checkLiteral(c, "operator: ADD", a.value, "typeset: ALLOWED_FOR_ADD_OPERAND", "N", "SS", "NS", "BS")
	case del:
		checkLiteral(c, "operator: DELETE", a.value, "typeset: ALLOWED_FOR_DELETE_OPERAND", "SS", "NS", "BS")
	}
}

func checkLiteral(c *checker, where string, o operand, typeset string, types ...string) {
	v := c.literal(o)
	if v == nil || slices.Contains(types, v.Type()) {
		return
	}
	if typeset != "" {
		typeset = ", " + typeset
	}
	c.fail("Incorrect operand type for operator or function; %s, operand type: %s%s", where, messageTypes[v.Type()], typeset)
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

func (o sumOperand) value(*Env, attr.Map) attr.Value  { return nil } // SET computes it, with errors: see compute
func (o ifNotExists) value(*Env, attr.Map) attr.Value { return nil }
func (o listAppend) value(*Env, attr.Map) attr.Value  { return nil }
