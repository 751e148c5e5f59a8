// Package jsonread reads JSON of a known shape, fast and without reflection, for answers of which there are many. Whatever
// it does not expect it does not read: its callers leave that to the SDK.
package jsonread

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// Reader reads JSON of which its caller knows the shape. At the first thing that is not as it should be, it gives up for
// good: it reads nothing more, and End reports false.
type Reader struct {
	in  []byte
	at  int
	bad bool
}

// New reads text. What it returns are copies.
func New(text []byte) Reader { return Reader{in: text} }

// Fail gives up: the caller has found what it does not know.
func (r *Reader) Fail() { r.bad = true }

// FailIf gives up if found.
func (r *Reader) FailIf(found bool) { r.bad = r.bad || found }

// Object calls member at the value of each member.
func (r *Reader) Object(member func(name []byte)) {
	r.expect('{')
	for n := 0; !r.bad && !r.is('}'); n++ {
		if n > 0 {
			r.expect(',')
		}
		name := r.name()
		r.expect(':')
		if !r.bad {
			member(name)
		}
	}
}

// Array calls item at each item.
func (r *Reader) Array(item func()) {
	r.expect('[')
	for n := 0; !r.bad && !r.is(']'); n++ {
		if n > 0 {
			r.expect(',')
		}
		if !r.bad {
			item()
		}
	}
}

// name reads a name as it is. One with an escape or a letter of more than a byte is nothing that AWS sends unasked.
func (r *Reader) name() []byte {
	r.expect('"')
	name := r.in[r.at : r.at+plain(r.in[r.at:])]
	r.at += len(name)
	if r.at == len(r.in) || r.in[r.at] != '"' || !ascii(name) {
		r.bad = true
		return nil
	}
	r.at++
	return name
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// AppendString reads a string. It leaves to others what may be changed on its way out of JSON: letters that are spelled
// as numbers, and what is no UTF-8.
func (r *Reader) AppendString(to []byte) []byte {
	r.expect('"')
	start := len(to)
	for !r.bad {
		rest := r.in[r.at:]
		n := plain(rest)
		to, rest = append(to, rest[:n]...), rest[n:]
		r.at += n
		switch {
		case len(rest) > 0 && rest[0] == '"':
			r.at++
			r.bad = !utf8.Valid(to[start:])
			return to
		case len(rest) > 1 && rest[0] == '\\' && escaped[rest[1]] != 0:
			r.at += 2
			to = append(to, escaped[rest[1]])
		default:
			r.bad = true
		}
	}
	return to
}

var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// plain is how many bytes at the start of text stand for themselves in a string. It looks at eight of them at once: less
// or equal, in each byte of a word, is what subtraction borrows from its highest bit. A borrow may spoil the bytes after
// it, but not the first that is found.
func plain(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(text)-n >= 8; n += 8 {
		v := binary.LittleEndian.Uint64(text[n:])
		quote, backslash := v^ones*'"', v^ones*'\\'
		found := (v-ones*' ')&^v | (quote-ones)&^quote | (backslash-ones)&^backslash
		if found &= highs; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] >= ' ' && text[n] != '"' && text[n] != '\\' {
		n++
	}
	return n
}

// Number reads a number as capacities are written: digits, and perhaps a fraction.
func (r *Reader) Number() float64 {
	r.space()
	from := r.at
	for r.at < len(r.in) && (r.in[r.at] == '.' || '0' <= r.in[r.at] && r.in[r.at] <= '9') {
		r.at++
	}
	text := r.in[from:r.at]
	whole, fraction, cut := bytes.Cut(text, []byte{'.'})
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil || len(whole) == 0 || len(whole) > 1 && whole[0] == '0' || cut && len(fraction) == 0 {
		r.bad = true // nothing that JSON calls a number
	}
	return n
}

func (r *Reader) expect(c byte) {
	if !r.bad && !r.is(c) {
		r.bad = true
	}
}

// is reads c, and reports false where something else comes next.
func (r *Reader) is(c byte) bool {
	r.space()
	if r.at == len(r.in) || r.in[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *Reader) space() {
	for r.at < len(r.in) && (r.in[r.at] == ' ' || r.in[r.at] == '\n' || r.in[r.at] == '\t' || r.in[r.at] == '\r') {
		r.at++
	}
}

// End reports whether all was read, and was as it should be.
func (r *Reader) End() bool {
	r.space()
	return !r.bad && r.at == len(r.in)
}
