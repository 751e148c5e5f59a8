package expr

import (
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

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
