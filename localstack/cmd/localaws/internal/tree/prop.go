package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Reader makes properties, and collects what is wrong with them.
type Reader struct {
	// File is the name of the file, for errors.
	File string
	// Eval returns the value of a node that may be an expression; nil is a value that is left out.
	Eval func(*Node) (*Node, error)

	errs []error
}

// Err joins what is wrong.
func (r *Reader) Err() error { return errors.Join(r.errs...) }

// Prop is a value with its place. All methods work where it is absent: they return the zero value.
type Prop struct {
	r    *Reader
	node *Node // nil: absent, null, or wrong
	line int
	path string
	root string
}

// Root returns the property of a node, whose members are named in errors after root.
func (r *Reader) Root(root string, n *Node) Prop { return Prop{r: r, root: root}.at("", n) }

func (p Prop) at(path string, n *Node) Prop {
	c := Prop{r: p.r, root: p.root, path: path, line: p.line}
	if n == nil {
		return c
	}
	c.line = n.Line
	n, err := p.r.eval(n)
	if err != nil {
		c.Fail(err)
	} else if n != nil && n.Kind != Null {
		c.node = n
	}
	return c
}

func (r *Reader) eval(n *Node) (*Node, error) {
	if r.Eval == nil || n == nil {
		return n, nil
	}
	return r.Eval(n)
}

// Try returns the error of a member's expression, which it does not note.
func (p Prop) Try(key string) error {
	if !p.is(Object) {
		return nil
	}
	_, err := p.r.eval(p.node.Fields[key])
	return err
}

// Fail notes an error of the property.
func (p Prop) Fail(err error) {
	where := strings.Trim(p.root+": "+p.path, ": ")
	if where != "" {
		where += ": "
	}
	p.r.errs = append(p.r.errs, fmt.Errorf("%s:%d: %s%w", p.r.File, p.line, where, err))
}

func (p Prop) failf(format string, args ...any) { p.Fail(fmt.Errorf(format, args...)) }

// Exists reports whether the property has a value.
func (p Prop) Exists() bool { return p.node != nil }

// Node is the value, nil where there is none.
func (p Prop) Node() *Node { return p.node }

func (p Prop) is(k Kind) bool {
	if p.node != nil && p.node.Kind != k {
		p.failf("is %s, must be %s", p.node.Kind, k)
		return false
	}
	return p.node != nil
}

// Get returns a member of an object.
func (p Prop) Get(key string) Prop {
	path := strings.Trim(p.path+"."+key, ".")
	if !p.is(Object) {
		return Prop{r: p.r, root: p.root, path: path, line: p.line}
	}
	return p.at(path, p.node.Fields[key])
}

// Keys are those of an object, in the order of the file.
func (p Prop) Keys() []string {
	if !p.is(Object) {
		return nil
	}
	return p.node.Keys
}

// Only notes an error for each other member of an object.
func (p Prop) Only(keys ...string) {
	for _, key := range p.Keys() {
		if !slices.Contains(keys, key) {
			c := p
			c.line = p.node.Fields[key].Line
			c.failf("unknown property %q; the known ones are %s", key, strings.Join(keys, ", "))
		}
	}
}

// List returns the items of a list, without those that are left out.
func (p Prop) List() (items []Prop) {
	if !p.is(List) {
		return nil
	}
	for i := range p.node.Items {
		if item := p.Item(i); item.Exists() {
			items = append(items, item)
		}
	}
	return items
}

// Item returns an item of a list.
func (p Prop) Item(i int) Prop { return p.at(fmt.Sprintf("%s[%d]", p.path, i), p.node.Items[i]) }

// Text returns a text, with a number or a boolean as it is written.
func (p Prop) Text() string {
	if !p.is(Text) {
		return ""
	}
	if strings.Contains(p.node.Text, "{{resolve:") {
		p.failf("%s: localaws does not resolve dynamic references", p.node.Text)
	}
	return p.node.Text
}

// Int returns a whole number from least to most, which may be written as a text.
func (p Prop) Int(least, most int) int {
	s := p.Text()
	if !p.is(Text) {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		p.failf("is %q, must be a whole number from %d to %d", s, least, most)
		return 0
	}
	return n
}

// Bool returns a boolean, which may be written as a text, and otherwise where it is absent.
func (p Prop) Bool(otherwise bool) bool {
	if !p.is(Text) {
		return otherwise
	}
	switch s := strings.ToLower(p.Text()); s {
	case "true", "false":
		return s == "true"
	default:
		p.failf("is %q, must be true or false", s)
		return otherwise
	}
}

// JSON returns the value for encoding/json: objects, lists, strings, numbers, booleans and nil.
func (p Prop) JSON() any {
	switch {
	case p.node == nil:
		return nil
	case p.node.Kind == List:
		list := []any{}
		for _, item := range p.List() {
			list = append(list, item.JSON())
		}
		return list
	case p.node.Kind == Object:
		object := map[string]any{}
		for _, key := range p.node.Keys {
			if c := p.Get(key); c.Exists() || p.r.Eval == nil {
				object[key] = c.JSON()
			}
		}
		return object
	}
	switch s := p.Text(); {
	case p.node.Bare && json.Valid([]byte(s)):
		return json.RawMessage(s)
	default:
		return s
	}
}
