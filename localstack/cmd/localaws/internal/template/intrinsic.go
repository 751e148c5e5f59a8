package template

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/tree"
)

func unknownFunction(name string) error {
	return fmt.Errorf("localaws does not know the function %s", name)
}

// eval returns the value of a node, whose members and items may still be expressions; nil for AWS::NoValue.
func (t *template) eval(n *tree.Node) (*tree.Node, error) {
	name, arg, ok := n.Single()
	if !ok || name != "Ref" && !strings.HasPrefix(name, "Fn::") {
		return n, nil
	}
	f, ok := functions[name]
	if !ok {
		return nil, unknownFunction(name)
	}
	v, err := f(t, arg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

var functions map[string]func(*template, *tree.Node) (*tree.Node, error)

func init() { // not a literal: the functions evaluate others
	functions = map[string]func(*template, *tree.Node) (*tree.Node, error){
		"Ref": (*template).ref, "Fn::GetAtt": (*template).getAtt, "Fn::Sub": (*template).sub, "Fn::Join": (*template).join,
		"Fn::Select": (*template).selectItem, "Fn::Split": (*template).split, "Fn::FindInMap": (*template).findInMap, "Fn::If": (*template).ifElse,
	}
}

// text evaluates a node that must be a text.
func (t *template) text(n *tree.Node) (string, error) {
	v, err := t.eval(n)
	switch {
	case err != nil:
		return "", err
	case v == nil || v.Kind != tree.Text:
		return "", errors.New("an argument is not a text")
	}
	return v.Text, nil
}

// list evaluates a node that must be a list, and its items. Those that are left out are not in it.
func (t *template) list(n *tree.Node) (items []*tree.Node, err error) {
	v, err := t.eval(n)
	if err != nil {
		return nil, err
	}
	if v == nil || v.Kind != tree.List {
		return nil, errors.New("an argument is not a list")
	}
	for _, item := range v.Items {
		i, err := t.eval(item)
		if err != nil {
			return nil, err
		}
		if i != nil {
			items = append(items, i)
		}
	}
	return items, nil
}

// args returns the arguments, which are not evaluated.
func args(n *tree.Node, count int) ([]*tree.Node, error) {
	if n.Kind != tree.List || len(n.Items) != count {
		return nil, fmt.Errorf("has not %d arguments", count)
	}
	return n.Items, nil
}

func (t *template) ref(n *tree.Node) (*tree.Node, error) {
	if n.Kind != tree.Text {
		return nil, errors.New("its argument is not a text")
	}
	return t.reference(n, n.Text)
}

func (t *template) reference(n *tree.Node, name string) (*tree.Node, error) {
	switch name {
	case "AWS::NoValue":
		return nil, nil
	case "AWS::Region":
		return tree.NewText(n.Line, t.place.Region), nil
	case "AWS::AccountId":
		return tree.NewText(n.Line, t.place.Account), nil
	case "AWS::Partition":
		return tree.NewText(n.Line, "aws"), nil
	case "AWS::URLSuffix":
		return tree.NewText(n.Line, "amazonaws.com"), nil
	case stackName:
		if v, ok := t.params[stackName]; ok {
			return tree.NewText(n.Line, v), nil
		}
		return tree.NewText(n.Line, defaultStack), nil
	}
	if r := t.resources[name]; r != nil {
		v, err := t.attribute(r, "")
		return tree.NewText(n.Line, v), err
	}
	p := t.root.Get("Parameters").Get(name)
	if !p.Exists() {
		return nil, fmt.Errorf("the template has neither a parameter nor a resource %s", name)
	}
	return t.parameter(n, name, p)
}

func (t *template) parameter(n *tree.Node, name string, p tree.Prop) (*tree.Node, error) {
	value, given := t.params[name]
	kind := p.Get("Type").Text()
	switch fallback := p.Get("Default"); {
	case given:
	case strings.HasPrefix(kind, "AWS::SSM::"):
		return nil, fmt.Errorf("the parameter %s is read from Systems Manager: set it with -param %[1]s=VALUE", name)
	case !fallback.Exists() && p.Node().Fields["Default"] == nil:
		return nil, fmt.Errorf("the parameter %s has no default: set it with -param %[1]s=VALUE", name)
	default:
		value = fallback.Text()
	}
	var allowed []string
	for _, v := range p.Get("AllowedValues").List() {
		allowed = append(allowed, v.Text())
	}
	if allowed != nil && !slices.Contains(allowed, value) {
		return nil, fmt.Errorf("the parameter %s is %q; %s are allowed", name, value, strings.Join(allowed, ", "))
	}
	if strings.HasPrefix(kind, "List<") || kind == "CommaDelimitedList" {
		return texts(n.Line, strings.Split(value, ",")), nil
	}
	return tree.NewText(n.Line, value), nil
}

func texts(line int, values []string) *tree.Node {
	l := &tree.Node{Line: line, Kind: tree.List}
	for _, v := range values {
		l.Items = append(l.Items, tree.NewText(line, strings.TrimSpace(v)))
	}
	return l
}

func (t *template) getAtt(n *tree.Node) (*tree.Node, error) {
	var id, attribute string
	switch n.Kind {
	case tree.Text:
		id, attribute, _ = strings.Cut(n.Text, ".")
	case tree.List:
		a, err := args(n, 2)
		if err != nil {
			return nil, err
		}
		id = a[0].Text
		if attribute, err = t.text(a[1]); err != nil {
			return nil, err
		}
	}
	return t.getAttribute(n, id, attribute)
}

func (t *template) getAttribute(n *tree.Node, id, attribute string) (*tree.Node, error) {
	r := t.resources[id]
	if r == nil || attribute == "" {
		return nil, fmt.Errorf("the template has no resource %s with an attribute %q", id, attribute)
	}
	v, err := t.attribute(r, attribute)
	return tree.NewText(n.Line, v), err
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

func (t *template) sub(n *tree.Node) (*tree.Node, error) {
	text, own := n, map[string]*tree.Node{}
	if n.Kind == tree.List {
		a, err := args(n, 2)
		if err != nil {
			return nil, err
		}
		text, own = a[0], a[1].Fields
	}
	if text.Kind != tree.Text {
		return nil, errors.New("its first argument is not a text")
	}
	var errs []error
	out := variable.ReplaceAllStringFunc(text.Text, func(m string) string {
		name := strings.TrimSpace(m[2 : len(m)-1])
		if literal, ok := strings.CutPrefix(name, "!"); ok {
			return "${" + literal + "}"
		}
		v, err := t.substituted(n, own, name)
		errs = append(errs, err)
		return v
	})
	return tree.NewText(n.Line, out), errors.Join(errs...)
}

func (t *template) substituted(n *tree.Node, own map[string]*tree.Node, name string) (string, error) {
	if v := own[name]; v != nil {
		return t.text(v)
	}
	var v *tree.Node
	var err error
	if id, attribute, ok := strings.Cut(name, "."); ok {
		v, err = t.getAttribute(n, id, attribute)
	} else {
		v, err = t.reference(n, name)
	}
	switch {
	case err != nil:
		return "", err
	case v == nil || v.Kind != tree.Text:
		return "", fmt.Errorf("${%s} is not a text", name)
	}
	return v.Text, nil
}

func (t *template) join(n *tree.Node) (*tree.Node, error) {
	a, err := args(n, 2)
	if err != nil {
		return nil, err
	}
	by, err := t.text(a[0])
	if err != nil {
		return nil, err
	}
	items, err := t.list(a[1])
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, i := range items {
		if i.Kind != tree.Text {
			return nil, errors.New("an item is not a text")
		}
		parts = append(parts, i.Text)
	}
	return tree.NewText(n.Line, strings.Join(parts, by)), nil
}

func (t *template) selectItem(n *tree.Node) (*tree.Node, error) {
	a, err := args(n, 2)
	if err != nil {
		return nil, err
	}
	index, err := t.text(a[0])
	if err != nil {
		return nil, err
	}
	items, err := t.list(a[1])
	if err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(items) {
		return nil, fmt.Errorf("the index %s is not one of a list of %d", index, len(items))
	}
	return items[i], nil
}

func (t *template) split(n *tree.Node) (*tree.Node, error) {
	a, err := args(n, 2)
	if err != nil {
		return nil, err
	}
	by, err := t.text(a[0])
	if err != nil {
		return nil, err
	}
	s, err := t.text(a[1])
	if err != nil {
		return nil, err
	}
	l := &tree.Node{Line: n.Line, Kind: tree.List}
	for _, part := range strings.Split(s, by) {
		l.Items = append(l.Items, tree.NewText(n.Line, part))
	}
	return l, nil
}

func (t *template) findInMap(n *tree.Node) (*tree.Node, error) {
	a, err := args(n, 3)
	if err != nil {
		return nil, err
	}
	at := t.root.Get("Mappings")
	for _, arg := range a {
		key, err := t.text(arg)
		if err != nil {
			return nil, err
		}
		if at = at.Get(key); !at.Exists() {
			return nil, fmt.Errorf("the template's Mappings have no %s", key)
		}
	}
	return at.Node(), nil
}

func (t *template) ifElse(n *tree.Node) (*tree.Node, error) {
	a, err := args(n, 3)
	if err != nil {
		return nil, err
	}
	holds, err := t.condition(a[0].Text)
	switch {
	case err != nil:
		return nil, err
	case holds:
		return t.eval(a[1])
	}
	return t.eval(a[2])
}
