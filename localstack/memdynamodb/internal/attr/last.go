package attr

import "bytes"

// Last is the last of several values that are read one after the other, often the same one again.
type Last[T any] struct {
	raw []byte
	v   T
}

// Read reads a value with read, a method of d's that reads a whole one, unless it is byte for byte the last one: that is
// returned again.
func (l *Last[T]) Read(d *Decoder, read func() (T, error)) (T, error) {
	d.space()
	// Where a whole value begins like this, it ends like this.
	if len(l.raw) > 0 && bytes.HasPrefix(d.data[d.pos:], l.raw) {
		d.pos += len(l.raw)
		return l.v, nil
	}
	start := d.pos
	v, err := read()
	if err != nil {
		return v, err
	}
	l.raw, l.v = d.data[start:d.pos], v
	return v, nil
}
