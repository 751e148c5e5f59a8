// Package template reads the queues, tables, functions and mappings of a CloudFormation or SAM template.
package template

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/tree"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
)

// Load reads a template. The parameters replace the defaults of the template's own. AWS::StackName is one of them, "local" by default.
func Load(file string, data []byte, params map[string]string, url string, place places.Place) (*plan.Plan, error) {
	root, err := tree.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	t := &template{url: url, place: place, params: params, plan: &plan.Plan{}, evaluating: map[string]bool{}}
	t.raw = &tree.Reader{File: file}
	t.reader = &tree.Reader{File: file, Eval: t.eval}
	t.root = t.raw.Root("", root)
	t.checkParams()
	t.readResources()
	if err := errors.Join(t.raw.Err(), t.reader.Err()); err != nil {
		return nil, err
	}
	return t.plan, nil
}

type template struct {
	url        string // of localaws
	place      places.Place
	params     map[string]string
	raw        *tree.Reader // reads expressions as they are
	reader     *tree.Reader // reads their values
	root       tree.Prop    // raw
	plan       *plan.Plan
	resources  map[string]*resource
	evaluating map[string]bool // names and conditions whose value is being found, for cycles
}

const (
	stackName    = "AWS::StackName" // the pseudo parameter that -param may set
	defaultStack = "local"
)

func (t *template) checkParams() {
	declared := t.root.Get("Parameters").Keys()
	for _, name := range slices.Sorted(maps.Keys(t.params)) {
		if name != stackName && !slices.Contains(declared, name) {
			t.root.Fail(fmt.Errorf("-param %s: the template has no such parameter; it has %s", name, strings.Join(append([]string{stackName}, declared...), ", ")))
		}
	}
}

// resource is a resource of the template.
type resource struct {
	id, kind string
	props    tree.Prop // evaluated
	made     bool      // its condition holds, and localaws makes its kind
	name     string    // once it is known
}

// The kinds that localaws makes.
const (
	kindQueue       = "AWS::SQS::Queue"
	kindTable       = "AWS::DynamoDB::Table"
	kindSimpleTable = "AWS::Serverless::SimpleTable"
	kindFunction    = "AWS::Lambda::Function"
	kindSAMFunction = "AWS::Serverless::Function"
	kindMapping     = "AWS::Lambda::EventSourceMapping"
)

var kinds = map[string]func(*template, *resource){
	kindQueue: (*template).queue, kindTable: (*template).table, kindSimpleTable: (*template).simpleTable,
	kindFunction: (*template).function, kindSAMFunction: (*template).samFunction, kindMapping: (*template).mapping,
}

// readResources knows all names first, since each may refer to others that come later.
func (t *template) readResources() {
	t.resources = map[string]*resource{}
	all := t.root.Get("Resources")
	if !all.Exists() {
		all.Fail(errors.New("the template has none"))
	}
	if macros := t.root.Get("Transform"); macros.Exists() {
		for _, macro := range append(macros.Node().Items, macros.Node()) {
			if macro.Kind == tree.Text && !strings.HasPrefix(macro.Text, "AWS::Serverless-") {
				t.leaveOut("Transform %s", macro.Text)
			}
		}
	}
	for _, id := range all.Keys() {
		if strings.HasPrefix(id, "Fn::") {
			all.Fail(unknownFunction(id))
			continue
		}
		res := all.Get(id)
		r := &resource{id: id, kind: res.Get("Type").Text()}
		if !res.Exists() {
			res.Fail(errors.New("is empty"))
			continue
		}
		r.props = t.reader.Root(id, res.Node().Fields["Properties"])
		made, err := t.holds(res.Get("Condition"))
		if err != nil {
			res.Fail(err)
		}
		r.made = made && kinds[r.kind] != nil
		if made && !r.made {
			t.leaveOut("%s (%s)", id, r.kind)
		}
		t.resources[id] = r
	}
	for _, id := range all.Keys() {
		if r := t.resources[id]; r != nil && r.made {
			kinds[r.kind](t, r)
		}
	}
}

func (t *template) leaveOut(format string, args ...any) {
	t.plan.LeftOut = append(t.plan.LeftOut, fmt.Sprintf(format, args...))
}

// name is the physical name of a resource: that of its property, or its logical ID.
func (t *template) name(r *resource) (string, error) {
	if r.name != "" {
		return r.name, nil
	}
	if t.evaluating[r.id] {
		return "", fmt.Errorf("the name of %s refers to itself", r.id)
	}
	t.evaluating[r.id] = true
	defer delete(t.evaluating, r.id)
	property, suffix := "", ""
	switch r.kind {
	case kindQueue:
		property = "QueueName"
		if r.props.Get("FifoQueue").Bool(false) {
			suffix = ".fifo"
		}
	case kindTable, kindSimpleTable:
		property = "TableName"
	case kindFunction, kindSAMFunction:
		property = "FunctionName"
	}
	if r.name = r.props.Get(property).Text(); r.name == "" {
		r.name = r.id + suffix
	}
	return r.name, nil
}

// attribute is the value of GetAtt, and with "" that of Ref.
func (t *template) attribute(r *resource, attribute string) (string, error) {
	if !r.made {
		return "", &leftOutError{r}
	}
	name, err := t.name(r)
	if err != nil {
		return "", err
	}
	var values map[string]string
	switch r.kind {
	case kindQueue:
		url := t.place.QueueURL(t.url, name)
		values = map[string]string{"": url, "QueueUrl": url, "QueueName": name, "Arn": t.place.ARN("sqs", name)}
	case kindTable:
		values = map[string]string{"": name, "Arn": t.place.ARN("dynamodb", "table/"+name)}
		if r.props.Get("StreamSpecification").Exists() {
			values["StreamArn"] = plan.Stream(t.place, name)
		}
	case kindSimpleTable:
		values = map[string]string{"": name, "Arn": t.place.ARN("dynamodb", "table/"+name)}
	case kindFunction, kindSAMFunction:
		values = map[string]string{"": name, "Arn": t.place.ARN("lambda", "function:"+name)}
	case kindMapping:
		values = map[string]string{"": plan.UUID(r.id), "Id": plan.UUID(r.id)}
	}
	v, ok := values[attribute]
	if !ok {
		return "", fmt.Errorf("%s has no attribute %s", r.id, attribute)
	}
	return v, nil
}

// leftOutError is a reference to a resource that localaws does not make.
type leftOutError struct{ r *resource }

func (e *leftOutError) Error() string {
	if kinds[e.r.kind] != nil {
		return fmt.Sprintf("it refers to %s, whose condition is false", e.r.id)
	}
	return fmt.Sprintf("it refers to %s, and localaws makes no %s", e.r.id, e.r.kind)
}
