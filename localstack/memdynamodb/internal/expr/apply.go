package expr

import (
	"cmp"
	"slices"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// Errors that only an item brings out, in DynamoDB's words.
var (
	errPath    = &Error{"The document path provided in the update expression is invalid for update"}
	errMissing = &Error{"The provided expression refers to an attribute that does not exist in the item"}
	errType    = &Error{"An operand in the update expression has an incorrect data type"}
)

// change is an action with its value computed: nil removes.
type change struct {
	path  Path
	value attr.Value
}

// Paths are what the update touches.
func (u *Update) Paths(e *Env) []Path {
	paths := make([]Path, len(u.actions))
	for i, a := range u.actions {
		paths[i] = a.path.resolve(e)
	}
	return paths
}

// Apply returns the item with the update made. Every value is computed from the item as it was before any is written.
func (u *Update) Apply(e *Env, item attr.Map) (attr.Map, error) {
	changes := make([]change, 0, len(u.actions))
	for _, a := range u.actions {
		v, err := a.compute(e, item)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{a.path.resolve(e), v})
	}
	// Elements leave a list from its end, so that the indexes of the others still mean what they meant; what is written
	// goes first, and appended elements in the order of their indexes.
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

// write puts v at the path, or removes what is there if v is nil. It copies what it changes.
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

// sum is what ADD makes: a number added, or a set's union. What is missing counts as zero or as the empty set.
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
		if old, ok := old.(attr.StringSet); ok {
			return attr.StringSet(union(old, v)), nil
		}
	case attr.NumberSet:
		if old, ok := old.(attr.NumberSet); ok {
			return attr.NumberSet(union(old, v)), nil
		}
	case attr.BinarySet:
		if old, ok := old.(attr.BinarySet); ok {
			return attr.BinarySet(union(old, v)), nil
		}
	}
	return nil, errType
}

// difference is what DELETE leaves of a set; nil, an attribute removed, if nothing is left or nothing was there.
func difference(old, v attr.Value) (attr.Value, error) {
	if old == nil {
		return nil, nil
	}
	switch v := v.(type) {
	case attr.StringSet:
		if old, ok := old.(attr.StringSet); ok {
			if rest := without(old, v); len(rest) > 0 {
				return attr.StringSet(rest), nil
			}
			return nil, nil
		}
	case attr.NumberSet:
		if old, ok := old.(attr.NumberSet); ok {
			if rest := without(old, v); len(rest) > 0 {
				return attr.NumberSet(rest), nil
			}
			return nil, nil
		}
	case attr.BinarySet:
		if old, ok := old.(attr.BinarySet); ok {
			if rest := without(old, v); len(rest) > 0 {
				return attr.BinarySet(rest), nil
			}
			return nil, nil
		}
	}
	return nil, errType
}

func union[T comparable](a, b []T) []T {
	out := slices.Clone(a)
	for _, m := range b {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func without[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(m T) bool { return slices.Contains(b, m) })
}
