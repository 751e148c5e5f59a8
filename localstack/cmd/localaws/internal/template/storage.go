package template

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/tree"
)

// queueAttributes are the properties that are attributes of the same name. Keys of KMS have no effect, and may be of a resource that
// localaws does not make.
var (
	queueAttributes = []string{
		"ContentBasedDeduplication", "DeduplicationScope", "DelaySeconds", "FifoThroughputLimit", "MaximumMessageSize",
		"MessageRetentionPeriod", "ReceiveMessageWaitTimeSeconds", "SqsManagedSseEnabled", "VisibilityTimeout",
	}
	queueOthers = []string{"FifoQueue", "KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "QueueName", "RedriveAllowPolicy", "RedrivePolicy", "Tags"}
)

func (t *template) queue(r *resource) {
	p := r.props
	p.Only(append(queueOthers, queueAttributes...)...)
	q := plan.Queue{Name: t.named(r), Attributes: map[string]string{}, Tags: tags(p.Get("Tags"))}
	if p.Get("FifoQueue").Bool(false) {
		q.Attributes["FifoQueue"] = "true"
	}
	for _, name := range queueAttributes {
		if v := p.Get(name); v.Exists() {
			q.Attributes[name] = v.Text()
		}
	}
	for _, name := range []string{"RedrivePolicy", "RedriveAllowPolicy"} {
		if v := p.Get(name); v.Exists() {
			q.Attributes[name] = document(v)
		}
	}
	t.plan.Queues = append(t.plan.Queues, q)
}

// QueueAttribute notes an error for a name that is not an attribute of a queue.
func QueueAttribute(p tree.Prop, name string) {
	if !slices.Contains(queueAttributes, name) {
		p.Get(name).Fail(fmt.Errorf("unknown attribute; the known ones are RedrivePolicy, RedriveAllowPolicy, Tags, %s", strings.Join(queueAttributes, ", ")))
	}
}

// named is name, with its error noted.
func (t *template) named(r *resource) string {
	name, err := t.name(r)
	if err != nil {
		r.props.Fail(err)
	}
	return name
}

// document returns a JSON document, which a template may have as a text.
func document(p tree.Prop) string {
	if n := p.Node(); n.Kind == tree.Text {
		return p.Text()
	}
	b, err := json.Marshal(p.JSON())
	if err != nil {
		p.Fail(err)
	}
	return string(b)
}

// tags reads those of CloudFormation, a list, or of SAM, an object.
func tags(p tree.Prop) map[string]string {
	if !p.Exists() {
		return nil
	}
	all := map[string]string{}
	if p.Node().Kind == tree.Object {
		for _, key := range p.Keys() {
			all[key] = p.Get(key).Text()
		}
		return all
	}
	for _, tag := range p.List() {
		all[tag.Get("Key").Text()] = tag.Get("Value").Text()
	}
	return all
}

// The properties of a table. Those of the second line have no effect here.
var tableProperties = []string{
	"AttributeDefinitions", "BillingMode", "DeletionProtectionEnabled", "GlobalSecondaryIndexes", "KeySchema", "LocalSecondaryIndexes",
	"OnDemandThroughput", "PointInTimeRecoverySpecification", "ProvisionedThroughput", "StreamSpecification", "TableName", "Tags",
	"TimeToLiveSpecification",
	"ContributorInsightsSpecification", "ResourcePolicy", "SSESpecification", "TableClass", "WarmThroughput",
	"ImportSourceSpecification", "KinesisStreamSpecification", // left out, with a line
}

func (t *template) table(r *resource) {
	p := r.props
	p.Only(tableProperties...)
	for _, name := range []string{"ImportSourceSpecification", "KinesisStreamSpecification"} {
		if p.Get(name).Exists() {
			t.leaveOut("%s: %s", r.id, name)
		}
	}
	name := t.named(r)
	create := dynamodb.CreateTableInput{
		TableName: &name, BillingMode: ddbtypes.BillingMode(p.Get("BillingMode").Text()), KeySchema: keySchema(p.Get("KeySchema")),
		ProvisionedThroughput: throughput(p.Get("ProvisionedThroughput")), OnDemandThroughput: onDemand(p.Get("OnDemandThroughput")),
	}
	if p.Get("DeletionProtectionEnabled").Bool(false) {
		create.DeletionProtectionEnabled = new(true)
	}
	for _, a := range p.Get("AttributeDefinitions").List() {
		create.AttributeDefinitions = append(create.AttributeDefinitions, ddbtypes.AttributeDefinition{
			AttributeName: new(a.Get("AttributeName").Text()), AttributeType: ddbtypes.ScalarAttributeType(a.Get("AttributeType").Text()),
		})
	}
	for _, i := range p.Get("GlobalSecondaryIndexes").List() {
		create.GlobalSecondaryIndexes = append(create.GlobalSecondaryIndexes, ddbtypes.GlobalSecondaryIndex{
			IndexName: new(i.Get("IndexName").Text()), KeySchema: keySchema(i.Get("KeySchema")), Projection: projection(i.Get("Projection")),
			ProvisionedThroughput: throughput(i.Get("ProvisionedThroughput")), OnDemandThroughput: onDemand(i.Get("OnDemandThroughput")),
		})
	}
	for _, i := range p.Get("LocalSecondaryIndexes").List() {
		create.LocalSecondaryIndexes = append(create.LocalSecondaryIndexes, ddbtypes.LocalSecondaryIndex{
			IndexName: new(i.Get("IndexName").Text()), KeySchema: keySchema(i.Get("KeySchema")), Projection: projection(i.Get("Projection")),
		})
	}
	if s := p.Get("StreamSpecification"); s.Exists() {
		create.StreamSpecification = &ddbtypes.StreamSpecification{
			StreamEnabled: new(true), StreamViewType: ddbtypes.StreamViewType(s.Get("StreamViewType").Text()),
		}
	}
	for k, v := range tags(p.Get("Tags")) {
		create.Tags = append(create.Tags, ddbtypes.Tag{Key: &k, Value: &v})
	}
	table := plan.Table{Create: create, Backup: p.Get("PointInTimeRecoverySpecification").Get("PointInTimeRecoveryEnabled").Bool(false)}
	if ttl := p.Get("TimeToLiveSpecification"); ttl.Get("Enabled").Bool(false) {
		table.TTL = ttl.Get("AttributeName").Text()
	}
	t.plan.Tables = append(t.plan.Tables, table)
}

func keySchema(p tree.Prop) (keys []ddbtypes.KeySchemaElement) {
	for _, k := range p.List() {
		keys = append(keys, ddbtypes.KeySchemaElement{AttributeName: new(k.Get("AttributeName").Text()), KeyType: ddbtypes.KeyType(k.Get("KeyType").Text())})
	}
	return keys
}

func projection(p tree.Prop) *ddbtypes.Projection {
	out := &ddbtypes.Projection{ProjectionType: ddbtypes.ProjectionType(p.Get("ProjectionType").Text())}
	for _, a := range p.Get("NonKeyAttributes").List() {
		out.NonKeyAttributes = append(out.NonKeyAttributes, a.Text())
	}
	return out
}

func throughput(p tree.Prop) *ddbtypes.ProvisionedThroughput {
	if !p.Exists() {
		return nil
	}
	return &ddbtypes.ProvisionedThroughput{ReadCapacityUnits: units(p.Get("ReadCapacityUnits"), 1), WriteCapacityUnits: units(p.Get("WriteCapacityUnits"), 1)}
}

func onDemand(p tree.Prop) *ddbtypes.OnDemandThroughput {
	if !p.Exists() {
		return nil
	}
	return &ddbtypes.OnDemandThroughput{MaxReadRequestUnits: units(p.Get("MaxReadRequestUnits"), -1), MaxWriteRequestUnits: units(p.Get("MaxWriteRequestUnits"), -1)}
}

func units(p tree.Prop, least int) *int64 {
	if !p.Exists() {
		return nil
	}
	return new(int64(p.Int(least, math.MaxInt32)))
}

// simpleTable is SAM's table with one key.
func (t *template) simpleTable(r *resource) {
	p := r.props
	p.Only("PointInTimeRecoverySpecification", "PrimaryKey", "ProvisionedThroughput", "SSESpecification", "TableName", "Tags")
	name, key, kind := t.named(r), "id", ddbtypes.ScalarAttributeTypeS
	if k := p.Get("PrimaryKey"); k.Exists() {
		key = k.Get("Name").Text()
		kind = map[string]ddbtypes.ScalarAttributeType{"String": "S", "Number": "N", "Binary": "B"}[k.Get("Type").Text()]
	}
	create := dynamodb.CreateTableInput{
		TableName: &name, ProvisionedThroughput: throughput(p.Get("ProvisionedThroughput")),
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: &key, KeyType: ddbtypes.KeyTypeHash}},
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: &key, AttributeType: kind}},
	}
	if create.ProvisionedThroughput == nil {
		create.BillingMode = ddbtypes.BillingModePayPerRequest
	}
	for k, v := range tags(p.Get("Tags")) {
		create.Tags = append(create.Tags, ddbtypes.Tag{Key: &k, Value: &v})
	}
	t.plan.Tables = append(t.plan.Tables, plan.Table{
		Create: create, Backup: p.Get("PointInTimeRecoverySpecification").Get("PointInTimeRecoveryEnabled").Bool(false),
	})
}
