package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DynamoDB's limits of an expression.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html#limits-expression-parameters
const (
	maxExpression = 4096
	maxOperators  = 300
	maxIn         = 100
	maxPath       = 32
	maxListIndex  = 1<<32 - 2
)

// parser is a recursive descent over the tokens of one expression. Its methods panic with *Error at the first mistake,
// and [parser.run] returns that error. So the methods read like the grammar, without error checks.
type parser struct {
	refs
	kind      string // "ConditionExpression" and the like, for messages
	src       string
	tokens    []token
	pos       int
	operators int
	depth     int
	paths     []Path // all paths so far
	partiql   *Env   // of a PartiQL statement, which has literals and no reserved words; nil: src is an expression
}

// parse runs a grammar over src, and refuses text behind what the grammar reads.
func parse(kind, src string, grammar func(*parser)) error {
	p := &parser{kind: kind, src: src}
	return p.run(func() {
		switch {
		case strings.TrimSpace(src) == "":
			p.fail("The expression can not be empty;")
		case len(src) > maxExpression:
			p.fail("Expression size has exceeded the maximum allowed size;  expression size: %d", len(src))
		}
		p.tokens = lex(src)
		grammar(p)
		if p.peek().kind != tokEnd {
			p.syntax()
		}
	})
}

// run returns the *Error with which the grammar panics.
func (p *parser) run(grammar func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	grammar()
	return nil
}

func (p *parser) fail(format string, args ...any) {
	prefix := "Invalid " + p.kind + ": "
	if p.partiql != nil {
		prefix = "Statement wasn't well formed, can't be processed: "
	}
	panic(&Error{prefix + fmt.Sprintf(format, args...)})
}

// syntax refuses the current token. The message quotes it with the tokens before and after.
func (p *parser) syntax() {
	t := p.peek()
	from, to := t, t
	if p.pos > 0 {
		from = p.tokens[p.pos-1]
	}
	if p.pos+1 < len(p.tokens) {
		to = p.tokens[p.pos+1]
	}
	p.fail("Syntax error; token: \"%s\", near: \"%s\"", t.text, strings.TrimSpace(p.src[from.start:to.end]))
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) advance() token {
	t := p.tokens[p.pos]
	if t.kind != tokEnd {
		p.pos++
	}
	return t
}

func (p *parser) punct(s string) bool {
	if t := p.peek(); t.kind != tokPunct || t.text != s {
		return false
	}
	p.pos++
	return true
}

func (p *parser) keyword(k string) bool {
	if !p.peek().is(k) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) want(punct string) {
	if !p.punct(punct) {
		p.syntax()
	}
}

// operator counts one operator or function.
func (p *parser) operator() {
	if p.operators++; p.operators > maxOperators {
		p.fail("The expression contains too many operators; operator count: %d", p.operators)
	}
}

// enter counts one more level of parentheses or calls. The limit is that of operators, so that no text exhausts the stack.
func (p *parser) enter() {
	if p.depth++; p.depth > maxOperators {
		p.fail("The expression contains too many operators; operator count: %d", p.depth)
	}
}

// use adds a placeholder to a list, once.
func use(list *[]string, placeholder string) {
	if !slices.Contains(*list, placeholder) {
		*list = append(*list, placeholder)
	}
}

// path reads a document path: a name, then .name and [index].
func (p *parser) path() Path {
	path := Path{p.step()}
	for {
		switch {
		case p.punct("."):
			path = append(path, p.step())
		case p.punct("["):
			t := p.peek()
			if t.kind != tokNumber {
				p.syntax()
			}
			i, err := strconv.Atoi(t.text)
			if err != nil || len(t.text) > len("4294967294") || i > maxListIndex {
				p.fail("List index is not within the allowable range; index: [%s]", t.text)
			}
			p.advance()
			p.want("]")
			path = append(path, Step{Index: i})
		default:
			if len(path) > maxPath {
				p.fail("The document path has too many nesting elements; nesting levels: %d", len(path))
			}
			p.paths = append(p.paths, path)
			if len(path) > 1 {
				use(&p.nested, path[0].Name)
			}
			return path
		}
	}
}

func (p *parser) step() Step {
	t := p.peek()
	switch t.kind {
	case tokName:
		use(&p.names, t.text)
		if p.partiql != nil {
			// The name is known, and takes the place of its placeholder. A name that begins with # would be taken for a
			// placeholder, and therefore keeps its own.
			if name := p.partiql.Names[t.text]; !strings.HasPrefix(name, "#") {
				p.advance()
				return Step{Name: name}
			}
		}
	case tokWord:
		if p.partiql == nil && Reserved(t.text) {
			// An operator at the place of a name is a syntax error, not a name that is reserved.
			if slices.Contains([]string{"AND", "OR", "NOT", "BETWEEN", "IN"}, strings.ToUpper(t.text)) {
				p.syntax()
			}
			p.fail("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
	default:
		p.syntax()
	}
	p.advance()
	return Step{Name: t.text}
}

// call reads the name and opening parenthesis of a function, if they come next.
func (p *parser) call() (string, bool) {
	t := p.peek()
	if t.kind != tokWord {
		return "", false
	}
	if next := p.tokens[p.pos+1]; next.kind != tokPunct || next.text != "(" {
		return "", false
	}
	if t.is("NOT") || t.is("IN") || t.is("AND") || t.is("OR") || t.is("BETWEEN") {
		return "", false
	}
	p.pos += 2
	p.operator()
	if p.partiql != nil {
		return strings.ToLower(t.text), true
	}
	return t.text, true
}

// inParentheses reads an operand with or without a pair of parentheses around it.
func (p *parser) inParentheses(bare func() operand) operand {
	if !p.punct("(") {
		return bare()
	}
	o := bare()
	p.want(")")
	return o
}

// behindParentheses returns the token behind the parenthesis that closes the current one, or the end if none closes it.
func (p *parser) behindParentheses() token {
	depth := 0
	for i := p.pos; p.tokens[i].kind != tokEnd; i++ {
		if t := p.tokens[i]; t.kind == tokPunct && t.text == "(" {
			depth++
		} else if t.kind == tokPunct && t.text == ")" {
			if depth--; depth == 0 {
				return p.tokens[i+1]
			}
		}
	}
	return p.tokens[len(p.tokens)-1]
}

// operands reads operands and the closing parenthesis.
func (p *parser) operands(next func() operand) []operand { return p.operandsTo(")", next) }

// operandsTo reads operands, with commas between them, and the punctuation at their end.
func (p *parser) operandsTo(end string, next func() operand) []operand {
	args := []operand{next()}
	for p.punct(",") {
		args = append(args, next())
	}
	p.want(end)
	return args
}
