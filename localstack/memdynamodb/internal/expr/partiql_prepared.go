package expr

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

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
