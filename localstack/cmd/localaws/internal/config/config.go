// Package config reads the file of localaws -config: queues, tables, items and functions.
package config

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/template"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/tree"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
)

// Load reads a configuration, in YAML or JSON.
func Load(file string, data []byte, place places.Place) (*plan.Plan, error) {
	root, err := tree.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := &tree.Reader{File: file}
	c := &reader{place: place, plan: &plan.Plan{}}
	p := r.Root("", root)
	p.Only("queues", "tables", "functions")
	for _, section := range []struct {
		name string
		read func(string, tree.Prop)
	}{{"queues", c.queue}, {"tables", c.table}, {"functions", c.function}} {
		for _, name := range p.Get(section.name).Keys() {
			section.read(name, p.Get(section.name).Get(name))
		}
	}
	return c.plan, r.Err()
}

type reader struct {
	place places.Place
	plan  *plan.Plan
}

// queue reads a queue's attributes, which have the names of AWS.
func (c *reader) queue(name string, p tree.Prop) {
	q := plan.Queue{Name: name, Attributes: map[string]string{}}
	for _, key := range p.Keys() {
		v := p.Get(key)
		switch key {
		case "RedrivePolicy", "RedriveAllowPolicy":
			q.Attributes[key] = c.policy(v)
		case "Tags":
			q.Tags = map[string]string{}
			for _, tag := range v.Keys() {
				q.Tags[tag] = v.Get(tag).Text()
			}
		default:
			template.QueueAttribute(p, key)
			q.Attributes[key] = v.Text()
		}
	}
	if strings.HasSuffix(name, ".fifo") {
		q.Attributes["FifoQueue"] = "true"
	}
	c.plan.Queues = append(c.plan.Queues, q)
}

// policy is a redrive policy, which may name queues in place of their ARNs.
func (c *reader) policy(p tree.Prop) string {
	p.Only("deadLetterTargetArn", "maxReceiveCount", "redrivePermission", "sourceQueueArns")
	arn := func(q string) string {
		if strings.HasPrefix(q, "arn:") {
			return q
		}
		return c.place.ARN("sqs", q)
	}
	policy := map[string]any{}
	for _, key := range p.Keys() {
		switch v := p.Get(key); key {
		case "deadLetterTargetArn":
			policy[key] = arn(v.Text())
		case "sourceQueueArns":
			var all []string
			for _, q := range v.List() {
				all = append(all, arn(q.Text()))
			}
			policy[key] = all
		default:
			policy[key] = v.JSON()
		}
	}
	b, err := json.Marshal(policy)
	if err != nil {
		p.Fail(err)
	}
	return string(b)
}

// table reads a table. The types of keys are "S" if they are not said.
func (c *reader) table(name string, p tree.Prop) {
	p.Only("key", "sort", "indexes", "localIndexes", "ttl", "stream", "items")
	types := map[string]ddbtypes.ScalarAttributeType{}
	var defined []string
	define := func(p tree.Prop) string {
		attribute, kind := "", ddbtypes.ScalarAttributeTypeS
		if key, _, ok := p.Node().Single(); ok {
			attribute, kind = key, ddbtypes.ScalarAttributeType(p.Get(key).Text())
		} else {
			attribute = p.Text()
		}
		if !slices.Contains(kind.Values(), kind) {
			p.Fail(fmt.Errorf("has the type %q, must be S, N or B", kind))
		}
		if known, ok := types[attribute]; ok && known != kind {
			p.Fail(fmt.Errorf("%s has the types %s and %s", attribute, known, kind))
		} else if !ok {
			defined = append(defined, attribute)
		}
		types[attribute] = kind
		return attribute
	}
	keys := func(hash, sort tree.Prop) (schema []ddbtypes.KeySchemaElement) {
		if hash.Exists() {
			schema = append(schema, ddbtypes.KeySchemaElement{AttributeName: new(define(hash)), KeyType: ddbtypes.KeyTypeHash})
		} else {
			p.Fail(errors.New("a key is missing"))
		}
		if sort.Exists() {
			schema = append(schema, ddbtypes.KeySchemaElement{AttributeName: new(define(sort)), KeyType: ddbtypes.KeyTypeRange})
		}
		return schema
	}
	create := dynamodb.CreateTableInput{TableName: &name, BillingMode: ddbtypes.BillingModePayPerRequest, KeySchema: keys(p.Get("key"), p.Get("sort"))}
	for _, index := range p.Get("indexes").Keys() {
		i := p.Get("indexes").Get(index)
		i.Only("key", "sort", "project")
		create.GlobalSecondaryIndexes = append(create.GlobalSecondaryIndexes, ddbtypes.GlobalSecondaryIndex{
			IndexName: &index, KeySchema: keys(i.Get("key"), i.Get("sort")), Projection: projection(i.Get("project")),
		})
	}
	for _, index := range p.Get("localIndexes").Keys() {
		i := p.Get("localIndexes").Get(index)
		i.Only("sort", "project")
		create.LocalSecondaryIndexes = append(create.LocalSecondaryIndexes, ddbtypes.LocalSecondaryIndex{
			IndexName: &index, KeySchema: keys(p.Get("key"), i.Get("sort")), Projection: projection(i.Get("project")),
		})
	}
	for _, attribute := range defined {
		create.AttributeDefinitions = append(create.AttributeDefinitions, ddbtypes.AttributeDefinition{AttributeName: &attribute, AttributeType: types[attribute]})
	}
	if s := p.Get("stream"); s.Exists() {
		create.StreamSpecification = &ddbtypes.StreamSpecification{StreamEnabled: new(true), StreamViewType: ddbtypes.StreamViewType(s.Text())}
	}
	t := plan.Table{Create: create, TTL: p.Get("ttl").Text()}
	for _, item := range p.Get("items").List() {
		values := map[string]ddbtypes.AttributeValue{}
		for _, key := range item.Keys() {
			values[key] = value(item.Get(key), types[key])
		}
		t.Items = append(t.Items, values)
	}
	c.plan.Tables = append(c.plan.Tables, t)
}

// projection is ALL, KEYS_ONLY, or a list of attributes.
func projection(p tree.Prop) *ddbtypes.Projection {
	if p.Exists() && p.Node().Kind == tree.List {
		out := &ddbtypes.Projection{ProjectionType: ddbtypes.ProjectionTypeInclude}
		for _, a := range p.List() {
			out.NonKeyAttributes = append(out.NonKeyAttributes, a.Text())
		}
		return out
	}
	if !p.Exists() {
		return &ddbtypes.Projection{ProjectionType: ddbtypes.ProjectionTypeAll}
	}
	return &ddbtypes.Projection{ProjectionType: ddbtypes.ProjectionType(p.Text())}
}

// value makes an attribute of a plain value. A key's type decides over the form; a key of type B is in base64.
func value(p tree.Prop, key ddbtypes.ScalarAttributeType) ddbtypes.AttributeValue {
	n := p.Node()
	switch {
	case n == nil:
		return &ddbtypes.AttributeValueMemberNULL{Value: true}
	case n.Kind == tree.List:
		l := &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{}}
		for i := range n.Items {
			l.Value = append(l.Value, value(p.Item(i), ""))
		}
		return l
	case n.Kind == tree.Object:
		m := &ddbtypes.AttributeValueMemberM{Value: map[string]ddbtypes.AttributeValue{}}
		for _, k := range n.Keys {
			m.Value[k] = value(p.Get(k), "")
		}
		return m
	case key == ddbtypes.ScalarAttributeTypeB:
		b, err := base64.StdEncoding.DecodeString(n.Text)
		if err != nil {
			p.Fail(err)
		}
		return &ddbtypes.AttributeValueMemberB{Value: b}
	case key == ddbtypes.ScalarAttributeTypeS || !n.Bare:
		return &ddbtypes.AttributeValueMemberS{Value: n.Text}
	case strings.EqualFold(n.Text, "true") || strings.EqualFold(n.Text, "false"):
		return &ddbtypes.AttributeValueMemberBOOL{Value: p.Bool(false)}
	}
	return &ddbtypes.AttributeValueMemberN{Value: n.Text}
}

// function reads a function. Its settings and those of its events have the names that they have in a SAM template.
func (c *reader) function(name string, p tree.Prop) {
	p.Only("bootstrap", "Timeout", "MemorySize", "Environment", "Concurrency", "Events")
	f := plan.Function{ID: name, Name: name, Bootstrap: p.Get("bootstrap").Text(), Timeout: 3 * time.Second, MemorySize: 128, Env: map[string]string{}}
	if t := p.Get("Timeout"); t.Exists() {
		f.Timeout = time.Duration(t.Int(1, 900)) * time.Second
	}
	if m := p.Get("MemorySize"); m.Exists() {
		f.MemorySize = m.Int(128, 10240)
	}
	if n := p.Get("Concurrency"); n.Exists() {
		f.Concurrency = n.Int(1, 1000)
	}
	for _, key := range p.Get("Environment").Keys() {
		f.Env[key] = p.Get("Environment").Get(key).Text()
	}
	c.plan.Functions = append(c.plan.Functions, f)
	for _, e := range p.Get("Events").List() {
		c.event(name, e)
	}
}

func (c *reader) event(function string, e tree.Prop) {
	e.Only(append([]string{"queue", "table"}, template.Settings...)...)
	queue, table := e.Get("queue").Text(), e.Get("table").Text()
	if (queue == "") == (table == "") {
		e.Fail(errors.New("needs either a queue or a table"))
		return
	}
	m := plan.Mapping{Function: function, Source: plan.Stream(c.place, table)}
	if queue != "" {
		m.Source = c.place.ARN("sqs", queue)
	}
	m.ID = plan.UUID(function, m.Source)
	template.ReadSettings(e, &m)
	c.plan.Mappings = append(c.plan.Mappings, m)
}
