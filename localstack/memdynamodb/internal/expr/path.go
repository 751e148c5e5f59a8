package expr

import (
	"fmt"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Step is one element of a path: a field by name, or by placeholder (#name) until the path is resolved; or, where Name is
// empty, an element of a list.
type Step struct {
	Name  string
	Index int
}

func (s Step) isIndex() bool { return s.Name == "" }

// Path leads from an item to one of its values.
type Path []Step

// String is the path as messages have it: [a, b, [0]].
func (p Path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		parts[i] = s.Name
		if s.isIndex() {
			parts[i] = fmt.Sprintf("[%d]", s.Index)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// resolve replaces the placeholders by the names they stand for.
func (p Path) resolve(e *Env) Path {
	out := p
	for i, s := range p {
		if strings.HasPrefix(s.Name, "#") {
			if i == 0 || &out[0] == &p[0] {
				out = append(Path(nil), p...)
			}
			out[i].Name = e.Names[s.Name]
		}
	}
	return out
}

// get returns the value at the path, nil if there is none.
func (p Path) get(e *Env, item attr.Map) attr.Value {
	v := item.Get(e.name(p[0].Name)) // a path begins with a name
	for _, s := range p[1:] {
		switch at := v.(type) {
		case attr.Map:
			if s.isIndex() {
				return nil
			}
			v = at.Get(e.name(s.Name))
		case attr.List:
			if !s.isIndex() || s.Index >= len(at) {
				return nil
			}
			v = at[s.Index]
		default:
			return nil
		}
	}
	return v
}

// clash says how two resolved paths of one expression stand in each other's way: "overlap" if one leads to or through
// the other, "conflict" if they take the same value for a map and for a list. "": not at all.
func (p Path) clash(o Path) string {
	for i := range min(len(p), len(o)) {
		switch {
		case p[i].isIndex() != o[i].isIndex():
			return "conflict"
		case p[i] != o[i]:
			return ""
		}
	}
	return "overlap"
}
