package expr

import (
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// lexStatement cuts a PartiQL statement into the tokens of the expression language, so that both have one parser. A quoted
// name becomes a #name, a string or parameter a :value, and env has what they stand for.
func lexStatement(p *parser, env *Env, params *parameters) {
	src := p.src
	value := func(v attr.Value, start, end int) {
		p.tokens = append(p.tokens, token{tokValue, p.literal(env, v), start, end})
	}
	for pos := 0; ; {
		for pos < len(src) && strings.IndexByte(" \t\r\n", src[pos]) >= 0 {
			pos++
		}
		if pos == len(src) {
			p.tokens = append(p.tokens, token{tokEnd, "<EOF>", pos, pos})
			break
		}
		switch c := src[pos]; {
		case c == '"' || c == '\'':
			text, end, ok := quoted(src, pos)
			if !ok {
				p.fail("Unterminated quote")
			}
			if c == '"' && text == "" {
				p.fail("Empty name")
			}
			if c == '\'' {
				value(attr.String(text), pos, end)
			} else {
				p.tokens = append(p.tokens, token{tokName, p.named(env, text), pos, end})
			}
			pos = end
		case c == '?':
			value(params.next(), pos, pos+1)
			pos++
		case strings.HasPrefix(src[pos:], "<<"), strings.HasPrefix(src[pos:], ">>"):
			p.tokens = append(p.tokens, token{tokPunct, src[pos : pos+2], pos, pos + 2})
			pos += 2
		default:
			t := scan(src, pos)
			if t.kind == tokName || t.kind == tokValue {
				t = token{tokPunct, src[pos : pos+1], pos, pos + 1} // PartiQL has no placeholders
			}
			p.tokens = append(p.tokens, t)
			pos = t.end
		}
	}
	params.end()
}

// quoted reads a text in quotes. A quote in the text is written twice.
func quoted(src string, start int) (text string, end int, ok bool) {
	quote := src[start : start+1]
	for rest := start + 1; ; {
		i := strings.Index(src[rest:], quote)
		if i < 0 {
			return "", 0, false
		}
		text, rest = text+src[rest:rest+i], rest+i+1
		if !strings.HasPrefix(src[rest:], quote) {
			return text, rest, true
		}
		text, rest = text+quote, rest+1
	}
}

// literal adds a value of the statement to env and returns a placeholder for it.
func (p *parser) literal(env *Env, v attr.Value) string {
	name := ":" + strconv.Itoa(len(env.Values))
	env.Values = env.Values.With(name, v)
	return name
}

// named does the same for a quoted name.
func (p *parser) named(env *Env, name string) string {
	n := "#" + strconv.Itoa(len(env.Names))
	env.Names[n] = name
	return n
}

// constant reads a literal: a string or a parameter, which are one token each, or a number, TRUE, FALSE, NULL, a list, a
// set or a map.
func (p *parser) constant(env *Env) (attr.Value, bool) {
	t := p.peek()
	switch {
	case t.kind == tokValue:
		p.advance()
		return env.Values.Get(t.text), true
	case t.kind == tokNumber, t.kind == tokPunct && (t.text == "-" || t.text == ".") && p.tokens[p.pos+1].kind == tokNumber:
		return p.numeral(), true
	case t.is("TRUE"), t.is("FALSE"):
		p.advance()
		return attr.Bool(t.is("TRUE")), true
	case t.is("NULL"):
		p.advance()
		return attr.Null{}, true
	case p.punct("["):
		return p.list(env, "]"), true
	case p.punct("<<"):
		return p.set(env), true
	case p.punct("{"):
		return p.tuple(env), true
	}
	return nil, false
}

// numeral joins the tokens of a number: sign, digits, point, digits.
func (p *parser) numeral() attr.Value {
	text := ""
	for t := p.peek(); t.kind == tokNumber || t.kind == tokPunct && (t.text == "." || t.text == "-" && text == ""); t = p.peek() {
		text += t.text
		p.advance()
	}
	n, err := attr.ParseNumber(text)
	if err != nil {
		p.syntax()
	}
	return n
}

func (p *parser) list(env *Env, end string) attr.List {
	p.enter()
	l := attr.List{}
	for !p.punct(end) {
		if len(l) > 0 {
			p.want(",")
		}
		l = append(l, p.mustConstant(env))
	}
	p.depth--
	return l
}

func (p *parser) mustConstant(env *Env) attr.Value {
	v, ok := p.constant(env)
	if !ok {
		p.syntax()
	}
	return v
}

// set reads the members of << >>: strings or numbers.
func (p *parser) set(env *Env) attr.Value {
	var strings attr.StringSet
	var numbers attr.NumberSet
	for _, v := range p.list(env, ">>") {
		switch v := v.(type) {
		case attr.String:
			strings = append(strings, string(v))
		case attr.Number:
			numbers = append(numbers, v)
		case parameter:
			p.syntax() // the type of the set depends on the type of the parameter
		}
	}
	switch {
	case len(strings) > 0 && numbers == nil:
		return strings
	case len(numbers) > 0 && strings == nil:
		return numbers
	}
	p.syntax()
	return nil
}

// tuple reads the fields of { }, whose names are in single quotes.
func (p *parser) tuple(env *Env) attr.Map {
	p.enter()
	m := attr.Map{}
	for !p.punct("}") {
		if len(m) > 0 {
			p.want(",")
		}
		t := p.peek()
		name, ok := env.Values.Get(t.text).(attr.String)
		if t.kind != tokValue || !ok {
			p.syntax()
		}
		if err := attr.CheckName(string(name)); err != nil {
			panic(&Error{err.Error()})
		}
		p.advance()
		p.want(":")
		m = m.With(string(name), p.mustConstant(env))
	}
	p.depth--
	return m
}
