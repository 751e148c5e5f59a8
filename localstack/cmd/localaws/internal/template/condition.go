package template

import (
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/tree"
)

// holds reports whether a resource whose Condition is p is made.
func (t *template) holds(p tree.Prop) (bool, error) {
	if !p.Exists() {
		return true, nil
	}
	return t.condition(p.Text())
}

// condition returns the value of one of the template's Conditions.
func (t *template) condition(name string) (bool, error) {
	if t.evaluating["Conditions."+name] {
		return false, fmt.Errorf("the condition %s refers to itself", name)
	}
	t.evaluating["Conditions."+name] = true
	defer delete(t.evaluating, "Conditions."+name)
	p := t.root.Get("Conditions").Get(name)
	if !p.Exists() {
		return false, fmt.Errorf("the template has no condition %q", name)
	}
	holds, err := t.decide(p.Node())
	if err != nil {
		return false, fmt.Errorf("condition %s: %w", name, err)
	}
	return holds, nil
}

func (t *template) decide(n *tree.Node) (bool, error) {
	name, arg, ok := n.Single()
	if !ok {
		return false, errors.New("is not a function")
	}
	if name == "Condition" {
		return t.condition(arg.Text)
	}
	if arg.Kind != tree.List {
		return false, fmt.Errorf("%s: its argument is not a list", name)
	}
	switch name {
	case "Fn::Equals":
		return t.equals(arg)
	case "Fn::Not":
		if len(arg.Items) != 1 {
			return false, errors.New("Fn::Not: has not one argument")
		}
		holds, err := t.decide(arg.Items[0])
		return !holds, err
	case "Fn::And", "Fn::Or":
		for _, item := range arg.Items {
			if holds, err := t.decide(item); err != nil || holds == (name == "Fn::Or") {
				return holds, err
			}
		}
		return name == "Fn::And", nil
	}
	return false, unknownFunction(name)
}

func (t *template) equals(arg *tree.Node) (bool, error) {
	a, err := args(arg, 2)
	if err != nil {
		return false, fmt.Errorf("Fn::Equals: %w", err)
	}
	one, err := t.text(a[0])
	if err != nil {
		return false, fmt.Errorf("Fn::Equals: %w", err)
	}
	other, err := t.text(a[1])
	if err != nil {
		return false, fmt.Errorf("Fn::Equals: %w", err)
	}
	return one == other, nil
}
