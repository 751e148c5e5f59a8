package dynamostore

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// generated is a JSON value, written by a producer in one of many ways, and as Powertools hashes it.
type generated struct{ payload, hashed string }

// lowered are the letters of generated names, and what JavaScript's toLowerCase makes of them.
var lowered = map[rune]string{
	'a': "a", 'B': "b", 'z': "z", '0': "0", '7': "7", '-': "-", '"': `"`, '\\': `\`, '/': "/", '<': "<", '\n': "\n", '\x01': "\x01", '\x7f': "\x7f",
	'É': "é", 'İ': "i\u0307", 'ı': "ı", 'ſ': "ſ", 'ẞ': "ß", '\u212a': "k", 'k': "k", 'i': "i", '\u2028': "\u2028",
	'\ue000': "\ue000", '\uffee': "\uffee", '\U00010400': "\U00010428", '😀': "😀",
}

type generator struct {
	*rand.Rand
	letters []rune
}

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	for r := range lowered {
		g.letters = append(g.letters, r)
	}
	slices.Sort(g.letters)
	return g
}

func (g *generator) text() string {
	var b strings.Builder
	for range g.IntN(4) {
		b.WriteRune(g.letters[g.IntN(len(g.letters))])
	}
	return b.String()
}

// quoted writes a text with any letters escaped, and as JSON.stringify does.
func (g *generator) quoted(s string) generated {
	payload, hashed := `"`, `"`
	for _, r := range s {
		short := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\x01': `\u0001`}[r]
		switch {
		case g.IntN(3) == 0:
			for _, u := range utf16.Encode([]rune{r}) {
				payload += fmt.Sprintf([]string{`\u%04x`, `\u%04X`}[g.IntN(2)], u)
			}
		case short != "":
			payload += short
		case r == '/' && g.IntN(2) == 0:
			payload += `\/`
		default:
			payload += string(r)
		}
		if short == "" {
			short = string(r)
		}
		hashed += short
	}
	return generated{payload + `"`, hashed + `"`}
}

var scalars = []generated{
	{"null", "null"}, {"true", "true"}, {"-0", "0"}, {"1.50", "1.5"}, {"1E3", "1000"}, {"1e21", "1e+21"}, {"123456789012345678901", "123456789012345680000"},
	{"0.000001", "0.000001"}, {"1e-7", "1e-7"}, {"5e-324", "5e-324"}, {"0.1e1", "1"},
}

func (g *generator) value(depth int) generated {
	space := []string{"", " ", "\n\t"}[g.IntN(3)]
	v := scalars[g.IntN(len(scalars))]
	switch n := g.IntN(6); {
	case n == 0:
		v = g.quoted(g.text())
	case n <= 2 && depth > 0:
		v = generated{"[", "["}
		for i := range g.IntN(4) {
			e := g.value(depth - 1)
			comma := strings.Repeat(",", min(i, 1))
			v.payload, v.hashed = v.payload+comma+e.payload, v.hashed+comma+e.hashed
		}
		v.payload, v.hashed = v.payload+space+"]", v.hashed+"]"
	case n <= 4 && depth > 0:
		v = g.object(depth, space)
	}
	return generated{space + v.payload + space, v.hashed}
}

func (g *generator) object(depth int, space string) generated {
	type member struct {
		index  int // of an array; -1: none
		sorted []uint16
		hashed string
	}
	payload := "{" + space
	var members []member
	for range g.IntN(6) {
		name := g.text()
		m := member{index: -1}
		for _, r := range name {
			m.sorted = append(m.sorted, utf16.Encode([]rune(lowered[r]))...)
		}
		if i := slices.Index([]string{"0", "7", "70", "77", "700", "707", "770", "777"}, name); i >= 0 {
			m.index = i
		}
		if slices.ContainsFunc(members, func(o member) bool { return slices.Equal(o.sorted, m.sorted) }) {
			continue
		}
		q, v := g.quoted(name), g.value(depth-1)
		if len(members) > 0 {
			payload += ","
		}
		payload += q.payload + space + ":" + v.payload
		m.hashed = q.hashed + ":" + v.hashed
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b member) int {
		switch {
		case a.index >= 0 && b.index >= 0:
			return a.index - b.index
		case a.index >= 0:
			return -1
		case b.index >= 0:
			return 1
		}
		return slices.Compare(a.sorted, b.sorted)
	})
	hashed := make([]string, len(members))
	for i, m := range members {
		hashed[i] = m.hashed
	}
	return generated{payload + space + "}", "{" + strings.Join(hashed, ",") + "}"}
}

// Whatever way a producer writes a value, its key is that of the text that Powertools makes of it.
func TestPowertoolsKeysOfGeneratedPayloads(t *testing.T) {
	t.Parallel()
	g := newGenerator(1)
	for range 5000 {
		v := g.value(4)
		sum := md5.Sum([]byte(v.hashed))
		if got, err := PowertoolsKey([]byte(v.payload)); err != nil || got != base64.StdEncoding.EncodeToString(sum[:]) {
			t.Fatalf("%q: got %q, %v, want the key of %q", v.payload, got, err, v.hashed)
		}
	}
}
