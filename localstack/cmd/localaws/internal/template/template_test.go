package template

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
)

const url = "http://127.0.0.1:4566"

var place = places.Place{Region: "us-east-1", Account: "000000000000"}

// The templates of this repository need no parameter.
func TestRepository(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"template.yaml":         "4 queues, 3 tables, 3 functions, 3 mappings",
		"deploy/function.yaml":  "2 queues, 1 tables, 1 functions, 1 mappings",
		"deploy/resources.yaml": "2 queues, 2 tables, 0 functions, 0 mappings",
		"deploy/ecs.yaml":       "0 queues, 0 tables, 0 functions, 0 mappings",
	} {
		p, err := Load(file, must.Get(os.ReadFile(filepath.Join("../../../../..", file)))(t), nil, url, place)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := counts(p); got != want || p.Check() != nil {
			t.Errorf("%s: %s, %v, want %s", file, got, p.Check(), want)
		}
	}
}

func counts(p *plan.Plan) string {
	return strings.NewReplacer("Q", num(len(p.Queues)), "T", num(len(p.Tables)), "F", num(len(p.Functions)), "M", num(len(p.Mappings))).
		Replace("Q queues, T tables, F functions, M mappings")
}

func num(n int) string { b, _ := json.Marshal(n); return string(b) }

const whole = `
Transform: [AWS::Serverless-2016-10-31, Other]
Parameters:
  Stage: {Type: String, Default: dev, AllowedValues: [dev, prod]}
  Topic: {Type: String}
  Names: {Type: CommaDelimitedList, Default: "a, b"}
Mappings: {Sizes: {dev: {Batch: 7}, prod: {Batch: 10}}}
Conditions:
  Prod: !Equals [!Ref Stage, prod]
  NotProd: !Not [{Condition: Prod}]
  Both: !And [!Condition Prod, !Condition NotProd]
Globals:
  Function: {Timeout: 20, Environment: {Variables: {LEVEL: debug, STAGE: !Ref Stage}}}
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !Join ["-", [!Ref AWS::StackName, !Select [1, !Ref Names], orders.fifo]]
      FifoQueue: true
      VisibilityTimeout: "60"
      RedrivePolicy: {deadLetterTargetArn: !GetAtt [Dead, Arn], maxReceiveCount: 3}
      KmsMasterKeyId: !Ref Key
      Tags: [{Key: team, Value: !Sub "${Stage}-${X}-${!Y}"}]
  Dead: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}
  Key: {Type: AWS::KMS::Key}
  OnlyProd: {Type: AWS::SQS::Queue, Condition: Prod}
  Neither: {Type: AWS::SQS::Queue, Condition: Both}
  Items:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: !If [Prod, PROVISIONED, PAY_PER_REQUEST]
      ProvisionedThroughput: !If [Prod, {ReadCapacityUnits: 1, WriteCapacityUnits: 1}, !Ref "AWS::NoValue"]
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}, {AttributeName: at, AttributeType: N}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      GlobalSecondaryIndexes:
        - {IndexName: by-at, KeySchema: [{AttributeName: at, KeyType: HASH}], Projection: {ProjectionType: KEYS_ONLY}}
      StreamSpecification: {StreamViewType: NEW_IMAGE}
      TimeToLiveSpecification: {AttributeName: ends, Enabled: "true"}
  Simple: {Type: AWS::Serverless::SimpleTable}
  Do:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 40
      Environment: {Variables: {QUEUE: !Ref Orders, TABLE: !Ref Items, KEY: !GetAtt Key.Arn, LEVEL: info}}
      Events:
        Queue: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn, BatchSize: !FindInMap [Sizes, !Ref Stage, Batch]}}
        Stream: {Type: DynamoDB, Properties: {Stream: !GetAtt Items.StreamArn, StartingPosition: LATEST, MaximumRetryAttempts: 0}}
        Hourly: {Type: Schedule}
  More:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {FunctionName: !GetAtt Do.Arn, EventSourceArn: !GetAtt Dead.Arn, Enabled: !Ref No, FunctionResponseTypes: [ReportBatchItemFailures]}
`

// Every part of a template arrives as it stands.
func TestWhole(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("${X}", "${Dead.QueueName}", "!Ref No", "false").Replace(whole)
	p := must.Get(Load("t.yaml", []byte(text), map[string]string{"AWS::StackName": "shop"}, url, place))(t)
	must.Do(t, p.Check())
	arn := func(service, name string) string { return "arn:aws:" + service + ":us-east-1:000000000000:" + name }
	zero := 0
	want := &plan.Plan{
		Queues: []plan.Queue{
			{Name: "shop-b-orders.fifo", Tags: map[string]string{"team": "dev-Dead.fifo-${Y}"}, Attributes: map[string]string{
				"FifoQueue": "true", "VisibilityTimeout": "60", "RedrivePolicy": `{"deadLetterTargetArn":"` + arn("sqs", "Dead.fifo") + `","maxReceiveCount":3}`,
			}},
			{Name: "Dead.fifo", Attributes: map[string]string{"FifoQueue": "true"}},
		},
		Functions: []plan.Function{{ID: "Do", Name: "Do", Timeout: 40 * time.Second, MemorySize: 128, Env: map[string]string{
			"QUEUE": "http://127.0.0.1:4566/000000000000/shop-b-orders.fifo", "TABLE": "Items", "LEVEL": "info", "STAGE": "dev",
		}}},
		Mappings: []plan.Mapping{
			{ID: plan.UUID("DoQueue"), Function: "Do", Source: arn("sqs", "shop-b-orders.fifo"), BatchSize: 7},
			{ID: plan.UUID("DoStream"), Function: "Do", Source: arn("dynamodb", "table/Items/stream/latest"), FromLatest: true, MaximumRetryAttempts: &zero},
			{ID: plan.UUID("More"), Function: "Do", Source: arn("sqs", "Dead.fifo"), Disabled: true, ReportBatchItemFailures: true},
		},
		LeftOut: []string{
			"Transform Other",
			"Key (AWS::KMS::Key)",
			"Do: variable KEY: it refers to Key, and localaws makes no AWS::KMS::Key; set it with -env",
			"Do: event Hourly (Schedule)",
		},
	}
	tables := p.Tables
	p.Tables = nil
	if !reflect.DeepEqual(p, want) {
		t.Errorf("%s\nwant\n%s", must.Get(json.MarshalIndent(p, "", " "))(t), must.Get(json.MarshalIndent(want, "", " "))(t))
	}
	if len(tables) != 2 || tables[0].TTL != "ends" || tables[0].Create.BillingMode != "PAY_PER_REQUEST" || tables[0].Create.ProvisionedThroughput != nil ||
		*tables[0].Create.GlobalSecondaryIndexes[0].IndexName != "by-at" || tables[0].Create.StreamSpecification.StreamViewType != "NEW_IMAGE" {
		t.Errorf("tables: %s", must.Get(json.Marshal(tables))(t))
	}
}

// The error of a property that localaws needs names file, line, resource, property and function.
func TestErrors(t *testing.T) {
	t.Parallel()
	queue := func(properties string) string {
		return "Resources:\n  Q:\n    Type: AWS::SQS::Queue\n    Properties: {" + properties + "}\n  Topic: {Type: AWS::SNS::Topic}\n"
	}
	for text, want := range map[string]string{
		queue("QueueName: !ImportValue other"):                                          "t.yaml:4: Q: QueueName: localaws does not know the function Fn::ImportValue",
		queue("DelaySeconds: {Fn::Transform: x}"):                                       "t.yaml:4: Q: DelaySeconds: localaws does not know the function Fn::Transform",
		queue("QueueName: !Sub '${Topic.TopicName}'"):                                   "t.yaml:4: Q: QueueName: Fn::Sub: it refers to Topic, and localaws makes no AWS::SNS::Topic",
		queue("QueueName: !Ref Q"):                                                      "the name of Q refers to itself",
		queue("QueueName: !Ref Nowhere"):                                                "neither a parameter nor a resource Nowhere",
		queue("QueueName: !GetAtt Q.Size"):                                              "refers to itself",
		queue("RedrivePolicy: {deadLetterTargetArn: !GetAtt Q.Size}"):                   "t.yaml:4: Q: RedrivePolicy.deadLetterTargetArn: Fn::GetAtt: Q has no attribute Size",
		queue("VisibilityTimout: 1"):                                                    `t.yaml:4: Q: unknown property "VisibilityTimout"`,
		queue("QueueName: '{{resolve:ssm:/name}}'"):                                     "does not resolve dynamic references",
		queue("FifoQueue: perhaps"):                                                     `FifoQueue: is "perhaps", must be true or false`,
		queue("QueueName: [a]"):                                                         "QueueName: is a list, must be a text",
		queue("QueueName: a, QueueName: b"):                                             `line 4: has the key "QueueName" twice`,
		"Resources: {Q: {Type: AWS::SQS::Queue, Condition: C}}":                         `the template has no condition "C"`,
		"Conditions: {C: !Condition C}\n" + queue("QueueName: a"):                       "",
		"Resources: {Fn::ForEach::Q: [a, [b], {}]}":                                     "localaws does not know the function Fn::ForEach::Q",
		"Description: none":                                                             "Resources: the template has none",
		"Parameters: {N: {Type: String}}\n" + queue("QueueName: !Ref N"):                "the parameter N has no default: set it with -param N=VALUE",
		"Resources: {F: {Type: AWS::Serverless::Function, Properties: {Timeout: 901}}}": `F: Timeout: is "901", must be a whole number from 1 to 900`,
		"Resources: {F: {Type: AWS::Serverless::Function, Properties: {Events: {E: {Type: SQS, Properties: {}}}}}}":                                          "F: Events.E.Properties: Queue is missing",
		"Resources: {M: {Type: AWS::Lambda::EventSourceMapping, Properties: {FunctionName: f, EventSourceArn: 'arn:aws:sqs:r:a:q', BatchSize: 0}}}":          "M: BatchSize: is",
		"Resources: {M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: 'arn:aws:sqs:r:a:q', TumblingWindowInSeconds: 9}}}":             "localaws has no tumbling windows",
		"Resources: {M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: 'arn:aws:dynamodb:r:a:table/t/stream/l', FunctionName: name}}}": "StartingPosition is missing",
		"a: &a [*a]":      "nested",
		"a: b\n---\nc: d": "second document",
	} {
		_, err := Load("t.yaml", []byte(text), nil, url, place)
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for params, want := range map[string]string{"Nothing=1": "the template has no such parameter", "Stage=test": `the parameter Stage is "test"; dev, prod are allowed`} {
		k, v, _ := strings.Cut(params, "=")
		if _, err := Load("t.yaml", []byte(whole), map[string]string{k: v}, url, place); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-param %s: %v, want %s", params, err, want)
		}
	}
}

// A template of the CDK is JSON, with long forms, and may be indented by tabs.
func TestJSON(t *testing.T) {
	t.Parallel()
	p := must.Get(Load("t.json", []byte("{\n\t\"Resources\": {\n\t\t\"Q\": {\"Type\": \"AWS::SQS::Queue\", \"Properties\": {\"QueueName\": {\"Fn::Join\": [\"\", [\"a\", {\"Ref\": \"AWS::Region\"}]]}}}\n\t}\n}"), nil, url, place))(t)
	if len(p.Queues) != 1 || p.Queues[0].Name != "aus-east-1" {
		t.Errorf("%+v", p)
	}
}

// A mapping may name its function with an alias or a version.
func TestQualifiedFunction(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"orders", "orders:live", "!GetAtt Orders.Arn", "!Sub '${Orders.Arn}:live'", "'000000000000:function:orders:7'"} {
		p := must.Get(Load("t.yaml", []byte(`
Resources:
  Orders: {Type: AWS::Serverless::Function, Properties: {FunctionName: orders}}
  Jobs: {Type: AWS::SQS::Queue}
  M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Jobs.Arn, FunctionName: `+function+`}}
`), nil, url, place))(t)
		if got := p.Mappings[0].Function; got != "orders" {
			t.Errorf("%s: the mapping is of the function %q, want orders", function, got)
		}
	}
}
