package expr

import (
	"cmp"
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Errors that depend on the item. The messages are DynamoDB's.
var (
	errPath    = &Error{"The document path provided in the update expression is invalid for update"}
	errMissing = &Error{"The provided expression refers to an attribute that does not exist in the item"}
	errType    = &Error{"An operand in the update expression has an incorrect data type"}
)

// change is an action with its value computed. A nil value removes.
type change struct {
	path  Path
	value attr.Value
}

// Paths are the resolved paths of the actions.
func (u *Update) Paths(e *Env) []Path {
	paths := make([]Path, len(u.actions))
	for i, a := range u.actions {
		paths[i] = a.path.resolve(e)
	}
	return paths
}

// Apply returns the item with the update made, and does not change item. All values are computed from the item as it is
// before the first is written.
func (u *Update) Apply(e *Env, item attr.Map) (attr.Map, error) {
	changes := make([]change, 0, len(u.actions))
	for _, a := range u.actions {
		v, err := a.compute(e, item)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{a.path.resolve(e), v})
	}
	// Writes come first, in the order of the paths, so that elements behind the end of a list are appended in the order of
	// their indexes. Removals come last, in the reverse order: the removal of an element moves only those behind it.
	slices.SortStableFunc(changes, func(a, b change) int {
		if (a.value == nil) != (b.value == nil) {
			if a.value == nil {
				return 1
			}
			return -1
		}
		order := slices.CompareFunc(a.path, b.path, func(x, y Step) int { return cmp.Or(cmp.Compare(x.Name, y.Name), x.Index-y.Index) })
		if a.value == nil {
			return -order
		}
		return order
	})
	for _, c := range changes {
		var err error
		if item, err = writeField(item, c.path, c.value); err != nil {
			return nil, err
		}
	}
	return item, nil
}

func (a action) compute(e *Env, item attr.Map) (attr.Value, error) {
	switch a.verb {
	case set:
		return computeSet(e, item, a.value)
	case add:
		return sum(a.path.get(e, item), a.value.value(e, item))
	case del:
		return difference(a.path.get(e, item), a.value.value(e, item))
	}
	return nil, nil
}

func computeSet(e *Env, item attr.Map, o operand) (attr.Value, error) {
	switch o := o.(type) {
	case ifNotExists:
		if v := o.path.value(e, item); v != nil {
			return v, nil
		}
		return computeSet(e, item, o.fallback)
	case listAppend:
		l, r, err := both(e, item, o.left, o.right)
		if err != nil {
			return nil, err
		}
		left, ok1 := l.(attr.List)
		right, ok2 := r.(attr.List)
		if !ok1 || !ok2 {
			return nil, errType
		}
		return slices.Concat(left, right), nil
	case sumOperand:
		l, r, err := both(e, item, o.left, o.right)
		if err != nil {
			return nil, err
		}
		left, ok1 := l.(attr.Number)
		right, ok2 := r.(attr.Number)
		if !ok1 || !ok2 {
			return nil, errType
		}
		if o.op == "+" {
			return arithmetic(left.Add(right))
		}
		return arithmetic(left.Sub(right))
	}
	if v := o.value(e, item); v != nil {
		return v, nil
	}
	return nil, errMissing
}

func both(e *Env, item attr.Map, left, right operand) (l, r attr.Value, err error) {
	if l, err = computeSet(e, item, left); err != nil {
		return nil, nil, err
	}
	r, err = computeSet(e, item, right)
	return l, r, err
}

func arithmetic(n attr.Number, err error) (attr.Value, error) {
	if err != nil {
		return nil, &Error{err.Error()}
	}
	return n, nil
}

// write returns a copy of at with v at the path. A nil v removes the value there.
func write(at attr.Value, path Path, v attr.Value) (attr.Value, error) {
	if len(path) == 0 {
		return v, nil
	}
	step := path[0]
	last := len(path) == 1
	switch at := at.(type) {
	case attr.Map:
		m, err := writeField(at, path, v)
		return m, err
	case attr.List:
		if !step.isIndex() {
			return nil, errPath
		}
		switch inside := step.Index < len(at); {
		case inside && last && v == nil:
			return slices.Delete(slices.Clone(at), step.Index, step.Index+1), nil
		case inside:
			inner, err := write(at[step.Index], path[1:], v)
			if err != nil {
				return nil, err
			}
			c := slices.Clone(at)
			c[step.Index] = inner
			return c, nil
		case last && v == nil:
			return at, nil
		case last:
			return append(slices.Clone(at), v), nil
		}
	}
	return nil, errPath
}

// writeField is write for a path that begins in a map, or in the item.
func writeField(at attr.Map, path Path, v attr.Value) (attr.Map, error) {
	name, last := path[0].Name, len(path) == 1
	switch {
	case path[0].isIndex():
		return nil, errPath
	case last && v == nil:
		return at.Without(name), nil
	case last:
		return at.With(name, v), nil
	}
	inner, err := write(at.Get(name), path[1:], v)
	if err != nil {
		return nil, err
	}
	return at.With(name, inner), nil
}

// sum is the result of ADD: the sum of two numbers, or the union of two sets. A missing attribute counts as zero or as the
// empty set.
func sum(old, v attr.Value) (attr.Value, error) {
	if old == nil {
		return v, nil
	}
	switch v := v.(type) {
	case attr.Number:
		if old, ok := old.(attr.Number); ok {
			return arithmetic(old.Add(v))
		}
	case attr.StringSet:
		return union(old, v)
	case attr.NumberSet:
		return union(old, v)
	case attr.BinarySet:
		return union(old, v)
	}
	return nil, errType
}

// difference is the result of DELETE: the set old without the members of v. If no member remains it is nil, and the
// attribute is removed.
func difference(old, v attr.Value) (attr.Value, error) {
	if old == nil {
		return nil, nil
	}
	switch v := v.(type) {
	case attr.StringSet:
		return without(old, v)
	case attr.NumberSet:
		return without(old, v)
	case attr.BinarySet:
		return without(old, v)
	}
	return nil, errType
}

// setOf is one of attr's types of sets.
type setOf[M comparable] interface {
	attr.Value
	~[]M
}

func union[S setOf[M], M comparable](old attr.Value, v S) (attr.Value, error) {
	before, ok := old.(S)
	if !ok {
		return nil, errType
	}
	out := slices.Clone(before)
	for _, m := range v {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out, nil
}

func without[S setOf[M], M comparable](old attr.Value, v S) (attr.Value, error) {
	before, ok := old.(S)
	if !ok {
		return nil, errType
	}
	rest := slices.DeleteFunc(slices.Clone(before), func(m M) bool { return slices.Contains(v, m) })
	if len(rest) == 0 {
		return nil, nil
	}
	return rest, nil
}
