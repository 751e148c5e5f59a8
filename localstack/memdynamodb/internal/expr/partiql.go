package expr

import (
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Statement is a parsed PartiQL statement on one item.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html
type Statement struct {
	*text
	Item attr.Map // of an INSERT
	Env  Env
}

// text is the part of a statement that does not depend on its parameters.
type text struct {
	Verb      string // "INSERT", "UPDATE", "DELETE" or "SELECT"
	Table     string
	Update    *Update // of an UPDATE
	Paths     []Path  // of a SELECT; nil: *
	Returning string  // "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW" or ""
	where     node
}

// maxStatement is the most characters of a statement.
const maxStatement = 8192

// ParseStatement parses a statement; params are what its question marks stand for, in their order. What it returns shares
// parts with other statements of the same text and is not to be changed.
func ParseStatement(src string, params []attr.Value) (Statement, error) {
	if !strings.Contains(src, "?") {
		// With its values in it, the text is another one each time: nothing to keep.
		return parseStatement(src, &parameters{values: params})
	}
	p, err := statements.get(src, func() (*prepared, error) { return prepare(src) })
	if err != nil {
		// The text is wrong, or it depends on the parameters whether it is: parsed with them, it says what DynamoDB would.
		return parseStatement(src, &parameters{values: params})
	}
	return p.with(params)
}

func parseStatement(src string, params *parameters) (Statement, error) {
	s := &Statement{text: &text{}, Env: Env{Names: map[string]string{}}}
	p := &parser{kind: "Statement", src: src, partiql: &s.Env}
	err := p.run(func() {
		if len(src) > maxStatement {
			p.fail("Statement size has exceeded the maximum allowed size; statement size: %d", len(src))
		}
		lexStatement(p, &s.Env, params)
		s.parse(p)
		p.punct(";")
		if p.peek().kind != tokEnd {
			p.syntax()
		}
	})
	return *s, err
}

func (s *Statement) parse(p *parser) {
	s.Verb = strings.ToUpper(p.peek().text)
	switch {
	case p.keyword("INSERT"):
		p.words("INTO")
		s.table(p)
		p.words("VALUE")
		p.want("{")
		s.Item = p.tuple(&s.Env)
		return
	case p.keyword("UPDATE"):
		s.table(p)
		s.changes(p)
	case p.keyword("DELETE"):
		p.words("FROM")
		s.table(p)
	case p.keyword("SELECT"):
		s.columns(p)
		p.words("FROM")
		s.table(p)
	default:
		p.syntax()
	}
	if p.keyword("WHERE") {
		s.where, _ = p.or()
	}
	if s.Verb != "SELECT" && p.keyword("RETURNING") {
		s.returning(p)
	}
}

func (p *parser) words(keywords ...string) {
	for _, k := range keywords {
		if !p.keyword(k) {
			p.syntax()
		}
	}
}

func (s *Statement) table(p *parser) {
	t := p.peek()
	switch t.kind {
	case tokName:
		s.Table = s.Env.Names[t.text]
	case tokWord:
		s.Table = t.text
	default:
		p.syntax()
	}
	p.advance()
}

// changes reads SET path = value and REMOVE path, each as often as it stands; commas between assignments are accepted too.
func (s *Statement) changes(p *parser) {
	s.Update = &Update{}
	for {
		section := setAction
		if p.keyword("REMOVE") {
			section = removeAction
		} else if !p.keyword("SET") {
			break
		}
		s.Update.actions = append(s.Update.actions, section(p))
		for p.punct(",") {
			s.Update.actions = append(s.Update.actions, section(p))
		}
	}
	if len(s.Update.actions) == 0 {
		p.syntax()
	}
}

func (s *Statement) columns(p *parser) {
	if p.punct("*") {
		return
	}
	s.Paths = append(s.Paths, p.path().resolve(&s.Env))
	for p.punct(",") {
		s.Paths = append(s.Paths, p.path().resolve(&s.Env))
	}
}

func (s *Statement) returning(p *parser) {
	what := "ALL"
	if p.keyword("MODIFIED") {
		what = "UPDATED"
	} else {
		p.words("ALL")
	}
	if p.keyword("NEW") {
		what += "_NEW"
	} else {
		p.words("OLD")
		what += "_OLD"
	}
	p.want("*")
	if s.Verb == "DELETE" && what != "ALL_OLD" {
		p.fail("Unsupported RETURNING clause for DELETE")
	}
	s.Returning = what
}

// ErrNotOneItem is a WHERE clause that does not say which item.
var ErrNotOneItem = &Error{"Where clause does not contain a mandatory equality on all key attributes"}

// Split takes the WHERE clause apart into the key, one equality for each of the key attributes, and the condition that is
// left, nil for none. Without a whole key it returns ErrNotOneItem.
func (s *Statement) Split(keys ...string) (attr.Map, *Condition, error) {
	var key attr.Map
	var rest node
	var take func(node)
	take = func(n node) {
		if and, ok := n.(andNode); ok {
			take(and.left)
			take(and.right)
			return
		}
		if name, v := s.equality(n); v != nil && slices.Contains(keys, name) && key.Get(name) == nil {
			key = key.With(name, v)
			return
		}
		if rest != nil {
			n = andNode{rest, n}
		}
		rest = n
	}
	if s.where != nil {
		take(s.where)
	}
	if len(key) != len(keys) {
		return nil, nil, ErrNotOneItem
	}
	if rest == nil {
		return key, nil, nil
	}
	c := &Condition{kind: "Statement", root: rest}
	return key, c, c.Bind(&s.Env)
}

func (s *Statement) equality(n node) (string, attr.Value) {
	c, ok := n.(compareNode)
	if !ok || c.op != "=" {
		return "", nil
	}
	left, right := c.left, c.right
	if _, reversed := left.(valueOperand); reversed {
		left, right = right, left
	}
	path, ok1 := left.(pathOperand)
	v, ok2 := right.(valueOperand)
	if !ok1 || !ok2 || len(path.path) != 1 {
		return "", nil
	}
	return s.Env.name(path.path[0].Name), s.Env.Values.Get(v.name)
}

// missing is PartiQL's IS MISSING.
func missing(p *parser, of operand) node {
	negate := p.keyword("NOT")
	p.words("MISSING")
	name := "attribute_not_exists"
	if negate {
		name = "attribute_exists"
	}
	return functionNode{name, []operand{of}}
}

// parameters are what the question marks of a statement stand for, in their order.
type parameters struct {
	values []attr.Value
	later  bool // they are still to come: the parser gets a parameter instead of each
	taken  int
}

// parameter is the place of a value among the parameters. To the parser it is a value of no type it knows.
type parameter int

// Type implements [attr.Value].
func (parameter) Type() string { return "?" }

var errParameters = &Error{"Number of parameters in request and statement don't match."}

func (p *parameters) next() attr.Value {
	n := p.taken
	p.taken++
	switch {
	case p.later:
		return parameter(n)
	case n >= len(p.values):
		panic(errParameters)
	}
	return p.values[n]
}

func (p *parameters) end() {
	if p.taken < len(p.values) {
		panic(errParameters)
	}
}

// prepared is a statement parsed before its parameters are known.
type prepared struct {
	statement  Statement
	parameters int
}

// prepare refuses what is wrong, and what cannot be parsed without the parameters: one that is a name or in a set.
func prepare(src string) (*prepared, error) {
	params := &parameters{later: true}
	s, err := parseStatement(src, params)
	if err != nil {
		return nil, err
	}
	if s.Verb == "INSERT" {
		s.Env.Values = nil // all of them are in its item
	}
	return &prepared{s, params.taken}, nil
}

// with returns the statement with its parameters in their places.
func (p *prepared) with(params []attr.Value) (Statement, error) {
	if len(params) != p.parameters {
		return Statement{}, errParameters
	}
	s := p.statement
	s.Env.Values = bindMap(s.Env.Values, params)
	s.Item = bindMap(s.Item, params)
	return s, nil
}

func bindMap(m attr.Map, params []attr.Value) attr.Map {
	m = slices.Clone(m)
	for i := range m {
		m[i].Value = bind(m[i].Value, params)
	}
	return m
}

func bind(v attr.Value, params []attr.Value) attr.Value {
	switch v := v.(type) {
	case parameter:
		return params[v]
	case attr.Map:
		return bindMap(v, params)
	case attr.List:
		l := slices.Clone(v)
		for i := range l {
			l[i] = bind(l[i], params)
		}
		return l
	}
	return v
}
