package expr

import (
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Statement is a parsed PartiQL statement on one item.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html
type Statement struct {
	*template
	Item attr.Map // of an INSERT
	Env  Env      // the names and values of the text
}

// template is the part of a statement that does not depend on its parameters.
type template struct {
	Verb      string // "INSERT", "UPDATE", "DELETE" or "SELECT"
	Table     string
	Index     string  // of a SELECT; "": the table
	Update    *Update // of an UPDATE
	Paths     []Path  // of a SELECT; nil: *
	Returning string  // "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW" or ""
	where     node
}

// maxStatement is the limit of a statement's length in bytes.
const maxStatement = 8192

// ParseStatement parses a statement. params are the values for its question marks, in their order. The caller must not
// change the result: it shares parts with other statements of the same text.
func ParseStatement(src string, params []attr.Value) (Statement, error) {
	if !strings.Contains(src, "?") {
		// Its values are in the text, which is another one each time. The cache would not help.
		return parseStatement(src, &parameters{values: params})
	}
	p, err := statements.get(src, func() (*prepared, error) { return prepare(src) })
	if err != nil {
		// The text is wrong, or only its parameters show whether it is. The parser needs them for DynamoDB's error.
		return parseStatement(src, &parameters{values: params})
	}
	return p.with(params)
}

func parseStatement(src string, params *parameters) (Statement, error) {
	s := &Statement{template: &template{}, Env: Env{Names: map[string]string{}}}
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
	case p.keyword("EXISTS"):
		p.fail("EXISTS is for transactions of statements") // which the server does not have
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
		s.index(p)
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

// index reads an index behind the name of a table. The text: nubo-db/dynamodb-conformance, error-messages/partiqlIndexQualifier.test.ts.
func (s *Statement) index(p *parser) {
	if !p.punct(".") {
		return
	}
	t := p.peek()
	switch t.kind {
	case tokName:
		s.Index = s.Env.Names[t.text]
	case tokWord:
		s.Index = t.text
	default:
		p.syntax()
	}
	p.advance()
	if p.punct(".") {
		panic(&Error{"A path may contain at most 2 components in the FROM clause"})
	}
}

// changes reads SET path = value and REMOVE path, in any number and order. Commas between actions are accepted too.
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

// ErrNotOneItem is returned for a WHERE clause that does not have the whole key of an item.
var ErrNotOneItem = &Error{"Where clause does not contain a mandatory equality on all key attributes"}

// Split returns the two parts of the WHERE clause: the key, from one equality for each key attribute, and the rest, a
// condition, nil for none. It returns ErrNotOneItem if the clause does not have the whole key.
func (s *Statement) Split(keys ...string) (attr.Map, *Condition, error) {
	var key attr.Map
	var rest node
	var split func(node)
	split = func(n node) {
		if and, ok := n.(andNode); ok {
			split(and.left)
			split(and.right)
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
		split(s.where)
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

// equality returns the attribute and the value of a node that compares them for equality, else a nil value.
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

// missing reads MISSING or NOT MISSING, behind IS.
func missing(p *parser, of operand) node {
	negate := p.keyword("NOT")
	p.words("MISSING")
	name := "attribute_not_exists"
	if negate {
		name = "attribute_exists"
	}
	return functionNode{name, []operand{of}}
}

// parameters are the values for the question marks of a statement, in their order.
type parameters struct {
	values  []attr.Value
	unknown bool // the statement is parsed before its parameters are known
	used    int
}

// parameter stands for the parameter with this index in a statement whose parameters are not known. The parser knows
// nothing of its type.
type parameter int

// Type implements [attr.Value].
func (parameter) Type() string { return "?" }

var errParameters = &Error{"Number of parameters in request and statement don't match."}

func (p *parameters) next() attr.Value {
	n := p.used
	p.used++
	switch {
	case p.unknown:
		return parameter(n)
	case n >= len(p.values):
		panic(errParameters)
	}
	return p.values[n]
}

func (p *parameters) end() {
	if p.used < len(p.values) {
		panic(errParameters)
	}
}

// prepared is a statement that was parsed before its parameters are known.
type prepared struct {
	statement  Statement
	parameters int
}

// prepare refuses what is wrong, and a statement whose parse depends on a parameter: one that is a name, or in a set.
func prepare(src string) (*prepared, error) {
	params := &parameters{unknown: true}
	s, err := parseStatement(src, params)
	if err != nil {
		return nil, err
	}
	if s.Verb == "INSERT" {
		s.Env.Values = nil // all are in the item
	}
	return &prepared{s, params.used}, nil
}

// with returns the statement with values for its parameters.
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
