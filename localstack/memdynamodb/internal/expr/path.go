package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Step is one element of a path: a field of a map, or, if Name is empty, an element of a list. Before the path is
// resolved, Name may be a placeholder (#name).
type Step struct {
	Name  string
	Index int
}

func (s Step) isIndex() bool { return s.Name == "" }

// Path leads from an item to one of its values.
type Path []Step

// String is the path in the form of messages: [a, b, [0]].
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

// resolve returns the path with names in place of placeholders.
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

// clash compares two resolved paths of one expression. It is "overlap" if one is the beginning of the other, "conflict" if
// they use one value as a map and as a list, else "".
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

// Bind returns the resolved paths. It refuses paths that overlap or conflict.
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

// Project returns the parts of the item that the resolved paths lead to. Elements of a list are in the order of the list,
// without gaps.
func Project(paths []Path, item attr.Map) attr.Map {
	out, _ := pick(paths, item).(attr.Map)
	if out == nil {
		return attr.Map{}
	}
	return out
}

// pick is Project for any value, nil if the paths lead to nothing in it.
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

// after returns the rest of each path that begins with the step.
func after(paths []Path, s Step) []Path {
	var rest []Path
	for _, p := range paths {
		if len(p) > 0 && p[0] == s {
			rest = append(rest, slices.Clip(p[1:]))
		}
	}
	return rest
}
