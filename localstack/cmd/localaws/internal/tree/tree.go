// Package tree reads YAML and JSON files as nodes that know their line, and properties that say what is wrong with them.
package tree

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kind is the kind of a [Node].
type Kind int

// The kinds. A text is any scalar other than null.
const (
	Null Kind = iota
	Text
	List
	Object
)

func (k Kind) String() string { return [...]string{"null", "a text", "a list", "an object"}[k] }

// Node is a value of a file.
type Node struct {
	Line int
	Kind
	Text   string // as it is written: 000000000000 keeps its zeros
	Bare   bool   // of a text: a number or a boolean by its form, without quotes
	Items  []*Node
	Keys   []string // of an object, in the order of the file
	Fields map[string]*Node
}

// NewText is a text that an expression has returned.
func NewText(line int, s string) *Node { return &Node{Line: line, Kind: Text, Text: s} }

// Single returns the key and the value of an object with one member.
func (n *Node) Single() (key string, value *Node, ok bool) {
	if n == nil || n.Kind != Object || len(n.Keys) != 1 {
		return "", nil, false
	}
	return n.Keys[0], n.Fields[n.Keys[0]], true
}

// Parse reads the one document of a file. A tag such as !Ref becomes an object with one member, as in JSON.
func Parse(data []byte) (*Node, error) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" ")) // JSON has tabs between values only, where YAML allows none
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	if err := d.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: a second document begins; one is read", more.Line)
	}
	p := &parser{}
	n := p.node(doc.Content[0])
	return n, errors.Join(p.errs...)
}

type parser struct {
	errs         []error
	depth, nodes int
	tooMuch      bool
}

func (p *parser) bad(y *yaml.Node, format string, args ...any) *Node {
	p.errs = append(p.errs, fmt.Errorf("line %d: %s", y.Line, fmt.Sprintf(format, args...)))
	return &Node{Line: y.Line}
}

// An alias may contain itself.
const (
	maxDepth = 100
	maxNodes = 1_000_000
)

func (p *parser) node(y *yaml.Node) *Node {
	p.depth++
	p.nodes++
	defer func() { p.depth-- }()
	switch {
	case p.tooMuch:
		return &Node{Line: y.Line}
	case p.depth > maxDepth || p.nodes > maxNodes:
		p.tooMuch = true
		return p.bad(y, "is nested more than %d deep, or has more than %d values: does an alias contain itself?", maxDepth, maxNodes)
	}
	n := p.untagged(y)
	tag, own := strings.CutPrefix(y.Tag, "!")
	if !own || strings.HasPrefix(tag, "!") {
		return n
	}
	name := "Fn::" + tag
	if tag == "Ref" || tag == "Condition" {
		name = tag
	}
	return &Node{Line: y.Line, Kind: Object, Keys: []string{name}, Fields: map[string]*Node{name: n}}
}

func (p *parser) untagged(y *yaml.Node) *Node {
	n := &Node{Line: y.Line}
	switch y.Kind {
	case yaml.AliasNode:
		return p.node(y.Alias)
	case yaml.SequenceNode:
		n.Kind = List
		for _, item := range y.Content {
			n.Items = append(n.Items, p.node(item))
		}
	case yaml.MappingNode:
		n.Kind, n.Fields = Object, map[string]*Node{}
		p.members(n, y)
	case yaml.ScalarNode:
		if y.Tag != "!!null" {
			n.Kind, n.Text = Text, y.Value
			n.Bare = y.Tag == "!!int" || y.Tag == "!!float" || y.Tag == "!!bool"
		}
	default:
		return p.bad(y, "has a YAML node that localaws does not read")
	}
	return n
}

// members adds the members of an object, and then those of << that it has not.
func (p *parser) members(n *Node, y *yaml.Node) {
	for i := 0; i < len(y.Content); i += 2 {
		switch key := y.Content[i]; {
		case key.Tag == "!!merge":
		case key.Kind != yaml.ScalarNode:
			p.bad(key, "has a key that is not a text")
		case n.Fields[key.Value] != nil:
			p.bad(key, "has the key %q twice", key.Value)
		default:
			n.set(key.Value, p.node(y.Content[i+1]))
		}
	}
	for i := 0; i < len(y.Content); i += 2 {
		if y.Content[i].Tag == "!!merge" {
			from := p.node(y.Content[i+1])
			for _, m := range append(from.Items, from) {
				for _, key := range m.Keys {
					if n.Fields[key] == nil {
						n.set(key, m.Fields[key])
					}
				}
			}
		}
	}
}

func (n *Node) set(key string, value *Node) {
	n.Keys = append(n.Keys, key)
	n.Fields[key] = value
}
