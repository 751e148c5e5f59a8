package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/config"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/template"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
)

// files are the flags that name resources in files.
type files struct {
	template, config string
	params           map[string]string

	bootstraps, functions, env map[string]string // of functions of the files, and of others; for all of them
	maps                       [][2]string       // function and queue
}

func (o *files) flags(f *flag.FlagSet) {
	f.StringVar(&o.template, "template", "", "SAM or CloudFormation template `file`, whose queues, tables, functions and mappings are created")
	f.StringVar(&o.config, "config", "", "YAML or JSON `file` of queues, tables, items and functions")
	f.Func("param", "`NAME=VALUE` of a parameter of the template, in place of its default; repeated for more", pairs(&o.params))
	f.Func("bootstrap", "`NAME=PATH` of the compiled bootstrap of a function of the template or the configuration, which then runs", pairs(&o.bootstraps))
	f.Func("function", "`NAME=PATH` of a function that is in no file: its timeout is 30 s", pairs(&o.functions))
	f.Func("map", "`FUNCTION=QUEUE`: the function gets the queue's messages, with ReportBatchItemFailures; repeated for more", func(s string) error {
		var one map[string]string
		err := pairs(&one)(s)
		for function, queue := range one {
			o.maps = append(o.maps, [2]string{function, queue})
		}
		return err
	})
	f.Func("env", "`NAME=VALUE` of an environment variable of all functions", pairs(&o.env))
}

// pairs reads NAME=VALUE.
func pairs(to *map[string]string) func(string) error {
	return func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return errors.New("must be NAME=VALUE")
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[name] = value
		return nil
	}
}

// load reads the files.
func (o *files) load(url string, place places.Place) (*plan.Plan, error) {
	p := &plan.Plan{}
	if len(o.params) > 0 && o.template == "" {
		return nil, errors.New("-param needs -template")
	}
	if o.template != "" {
		data, err := os.ReadFile(o.template)
		if err != nil {
			return nil, fmt.Errorf("-template: %w", err)
		}
		if p, err = template.Load(o.template, data, o.params, url, place); err != nil {
			return nil, err
		}
	}
	if o.config != "" {
		data, err := os.ReadFile(o.config)
		if err != nil {
			return nil, fmt.Errorf("-config: %w", err)
		}
		c, err := config.Load(o.config, data, place)
		if err != nil {
			return nil, err
		}
		p.Add(c)
	}
	return p, o.addFunctions(p, place)
}

const flagTimeout = 30 * time.Second // of a function of -function: the visibility timeout of a queue of -queues

// addFunctions adds the functions of the flags, and gives those of the files their bootstraps.
func (o *files) addFunctions(p *plan.Plan, place places.Place) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(o.bootstraps)) {
		i := slices.IndexFunc(p.Functions, func(f plan.Function) bool { return f.ID == id || f.Name == id })
		if i < 0 {
			errs = append(errs, fmt.Errorf("-bootstrap %s: no file has such a function; -function makes one", id))
			continue
		}
		p.Functions[i].Bootstrap = o.bootstraps[id]
	}
	for _, name := range slices.Sorted(maps.Keys(o.functions)) {
		p.Functions = append(p.Functions, plan.Function{ID: name, Name: name, Bootstrap: o.functions[name], Timeout: flagTimeout, MemorySize: 128})
	}
	for _, m := range o.maps {
		source := place.ARN("sqs", m[1])
		p.Mappings = append(p.Mappings, plan.Mapping{ID: plan.UUID(m[0], source), Function: m[0], Source: source, ReportBatchItemFailures: true})
	}
	return errors.Join(errs...)
}

// idle names the functions that do not run.
func idle(p *plan.Plan) string {
	var b strings.Builder
	for _, f := range p.Functions {
		if f.Bootstrap == "" {
			fmt.Fprintf(&b, "localaws does not run the function %s: give its -bootstrap %[1]s=PATH\n", f.ID)
		}
	}
	return b.String()
}

// leftOut says what a template has and localaws does not make.
func leftOut(p *plan.Plan, file string) string {
	if len(p.LeftOut) == 0 {
		return ""
	}
	return "localaws leaves out of " + file + ":\n  " + strings.Join(p.LeftOut, "\n  ") + "\n"
}

// load reads the files, and checks that what they name exists.
func (w *world) load() error {
	p, err := w.o.files.load(w.url, w.o.home())
	if err != nil {
		return err
	}
	w.plan = p
	return p.Check()
}

// The clients make their calls as any other client does, by HTTP.

func (w *world) sqsClient() *sqs.Client {
	return sqs.New(sqs.Options{Region: w.o.region, Credentials: aws.CredentialsProviderFunc(local), BaseEndpoint: &w.url})
}

func (w *world) dynamoClient() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: w.o.region, Credentials: aws.CredentialsProviderFunc(local), BaseEndpoint: &w.url})
}
