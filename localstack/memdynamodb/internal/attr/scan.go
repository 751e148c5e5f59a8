package attr

// object reads an object. It calls member with each name, and member reads the value.
func (d *decoder) object(member func(name string) error) error {
	return d.sequence('{', '}', "a structure or map", "a name", func() error {
		name, err := d.text()
		if err != nil {
			return err
		}
		if !d.take(':') {
			return d.unexpected("a value")
		}
		return member(name)
	})
}

// array reads an array. It calls element for each element, and element reads it.
func (d *decoder) array(element func() error) error {
	return d.sequence('[', ']', "a list", "an element", element)
}

// sequence reads elements with commas between them, from open to end.
func (d *decoder) sequence(open, end byte, what, part string, element func() error) error {
	if !d.take(open) {
		return d.unexpected(what)
	}
	if d.take(end) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if d.take(end) {
			return nil
		}
		if !d.take(',') {
			return d.unexpected(part)
		}
	}
}

// next skips white space and returns the byte at pos, 0 at the end.
func (d *decoder) next() byte {
	for ; d.pos < len(d.data); d.pos++ {
		if c := d.data[d.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// take reads the byte c, if it comes next.
func (d *decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.pos++
	return true
}

// word reads the word w, if it comes next.
func (d *decoder) word(w string) bool {
	if d.next() != w[0] || len(d.data) < d.pos+len(w) || string(d.data[d.pos:d.pos+len(w)]) != w {
		return false
	}
	d.pos += len(w)
	return true
}

// end refuses text behind the value.
func (d *decoder) end() error {
	if d.next(); d.pos < len(d.data) {
		return d.unexpected("the end")
	}
	return nil
}

// unexpected is the error of a value of another kind than want.
func (d *decoder) unexpected(want string) error {
	switch c := d.next(); {
	case c == 0:
		return &SyntaxError{"Unexpected end of JSON input"}
	case c == '"':
		return &SyntaxError{"STRING_VALUE cannot be converted to " + want}
	case c == '-' || c >= '0' && c <= '9':
		return &SyntaxError{"NUMBER_VALUE cannot be converted to " + want}
	case c == 't':
		return &SyntaxError{"TRUE_VALUE cannot be converted to " + want}
	case c == 'f':
		return &SyntaxError{"FALSE_VALUE cannot be converted to " + want}
	case c == '{':
		return &SyntaxError{"Start of structure or map found where not expected."}
	case c == '[':
		return &SyntaxError{"Unrecognized collection type class " + want}
	}
	return &SyntaxError{"Unexpected token"}
}
