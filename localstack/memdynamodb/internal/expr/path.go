package expr

import (
	"fmt"
	"slices"
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

// Projection is a parsed projection expression: the paths a read returns.
type Projection struct {
	refs
	paths []Path
}

const projectionKind = "ProjectionExpression"

func parseProjection(src string) (*Projection, error) {
	r := &Projection{}
	err := parse(projectionKind, src, func(p *parser) {
		r.paths = append(r.paths, p.path())
		for p.punct(",") {
			r.paths = append(r.paths, p.path())
		}
		r.refs = p.refs
	})
	return r, err
}

// Bind returns the resolved paths; they must not stand in each other's way.
func (r *Projection) Bind(e *Env) ([]Path, error) {
	if err := e.defined(projectionKind, &r.refs); err != nil {
		return nil, err
	}
	paths := make([]Path, len(r.paths))
	for i, p := range r.paths {
		paths[i] = p.resolve(e)
		for _, other := range paths[:i] {
			if how := other.clash(paths[i]); how != "" {
				return nil, &Error{"Invalid " + projectionKind + ": Two document paths " + how + " with each other; must remove or rewrite one of these paths; path one: " + other.String() + ", path two: " + paths[i].String()}
			}
		}
	}
	return paths, nil
}

// Project returns what of the item the resolved paths lead to. Elements picked from a list close up, in the list's order.
func Project(paths []Path, item attr.Map) attr.Map {
	out, _ := pick(paths, item).(attr.Map)
	if out == nil {
		return attr.Map{}
	}
	return out
}

func pick(paths []Path, v attr.Value) attr.Value {
	for _, p := range paths {
		if len(p) == 0 {
			return v
		}
	}
	switch v := v.(type) {
	case attr.Map:
		var out attr.Map
		for _, f := range v {
			if rest := after(paths, Step{Name: f.Name}); rest != nil {
				if inner := pick(rest, f.Value); inner != nil {
					out = append(out, attr.Field{Name: f.Name, Value: inner})
				}
			}
		}
		if out != nil {
			return out
		}
	case attr.List:
		var out attr.List
		for i, e := range v {
			if rest := after(paths, Step{Index: i}); rest != nil {
				if inner := pick(rest, e); inner != nil {
					out = append(out, inner)
				}
			}
		}
		if out != nil {
			return out
		}
	}
	return nil
}

// after returns what remains of the paths that begin with the step.
func after(paths []Path, s Step) []Path {
	var rest []Path
	for _, p := range paths {
		if len(p) > 0 && p[0] == s {
			rest = append(rest, slices.Clip(p[1:]))
		}
	}
	return rest
}
