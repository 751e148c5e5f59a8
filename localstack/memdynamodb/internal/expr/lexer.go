package expr

import (
	_ "embed" // reserved.txt
	"strings"
)

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // attribute names, keywords, functions
	tokName             // #name
	tokValue            // :value
	tokNumber           // list index
	tokPunct            // = <> < <= > >= ( ) [ ] , . + -
)

// token is a piece of an expression's text, from start to end in bytes.
type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// is reports whether the token is the keyword, in any case.
func (t token) is(keyword string) bool {
	return t.kind == tokWord && strings.EqualFold(t.text, keyword)
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
func word(c byte) bool   { return letter(c) || digit(c) || c == '_' } // after the first letter, or # or :

// lex cuts an expression into tokens. The last one is tokEnd. A byte with which no token begins is a token of its own,
// and the parser refuses it.
func lex(src string) []token {
	var tokens []token
	for pos := 0; ; {
		for pos < len(src) && strings.IndexByte(" \t\r\n", src[pos]) >= 0 {
			pos++
		}
		if pos == len(src) {
			return append(tokens, token{tokEnd, "<EOF>", pos, pos})
		}
		t := scan(src, pos)
		tokens = append(tokens, t)
		pos = t.end
	}
}

// scan returns the token that begins at start.
func scan(src string, start int) token {
	run := func(from int, ok func(byte) bool) int {
		for from < len(src) && ok(src[from]) {
			from++
		}
		return from
	}
	kind, end := tokPunct, start+1
	switch c := src[start]; {
	case letter(c):
		kind, end = tokWord, run(start, word)
	case digit(c):
		kind, end = tokNumber, run(start, digit)
	case c == '#' || c == ':':
		if e := run(start+1, word); e > start+1 {
			kind, end = tokName, e
			if c == ':' {
				kind = tokValue
			}
		}
	case strings.HasPrefix(src[start:], "<>"), strings.HasPrefix(src[start:], "<="), strings.HasPrefix(src[start:], ">="):
		end = start + 2
	}
	return token{kind, src[start:end], start, end}
}

// Reserved reports whether an expression must use a placeholder for an attribute with this name. Case does not count.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
func Reserved(word string) bool { return reserved[strings.ToUpper(word)] }

var reserved = func() map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(reservedWords) {
		set[w] = true
	}
	return set
}()

//go:embed reserved.txt
var reservedWords string
