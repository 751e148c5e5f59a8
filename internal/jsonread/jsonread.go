package sqsworker

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// jsonReader reads JSON of which its caller knows the shape. At the first thing that is not as it should be, it gives up:
// bad, for good.
type jsonReader struct {
	in  []byte
	at  int
	bad bool
}

// object calls member at the value of each member.
func (r *jsonReader) object(member func(name []byte)) {
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

// array calls item at each item.
func (r *jsonReader) array(item func()) {
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

// name reads a name as it is. One with an escape or a letter of more than a byte is nothing that SQS sends unasked.
func (r *jsonReader) name() []byte {
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

// appendString reads a string. It leaves to the SDK what may be changed on its way out of JSON: letters that are spelled
// as numbers, and what is no UTF-8.
func (r *jsonReader) appendString(to []byte) []byte {
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

func (r *jsonReader) expect(c byte) {
	if !r.bad && !r.is(c) {
		r.bad = true
	}
}

// is reads c, and reports false where something else comes next.
func (r *jsonReader) is(c byte) bool {
	r.space()
	if r.at == len(r.in) || r.in[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *jsonReader) space() {
	for r.at < len(r.in) && (r.in[r.at] == ' ' || r.in[r.at] == '\n' || r.in[r.at] == '\t' || r.in[r.at] == '\r') {
		r.at++
	}
}

// end reports whether all was read, and was as it should be.
func (r *jsonReader) end() bool {
	r.space()
	return !r.bad && r.at == len(r.in)
}
