package expr

import (
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// lexStatement cuts a PartiQL statement into the tokens of the expression language, so that one parser serves both: a
// quoted name becomes a #name and a literal or parameter a :value, with env saying what they stand for.
func lexStatement(p *parser, env *Env, params *parameters) {
	src := p.src
	p.tokens = make([]token, 0, 64)
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
				t = token{tokPunct, src[pos : pos+1], pos, pos + 1} // # and : mean nothing here
			}
			p.tokens = append(p.tokens, t)
			pos = t.end
		}
	}
	params.end()
}

// quoted reads a text in quotes, in which the quote itself stands twice.
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
