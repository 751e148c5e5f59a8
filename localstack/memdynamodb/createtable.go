package memdynamodb

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

type keyElement struct{ AttributeName, KeyType string }
type attributeDefinition struct{ AttributeName, AttributeType string }
type throughput struct{ ReadCapacityUnits, WriteCapacityUnits int64 }
type projection struct {
	ProjectionType   string
	NonKeyAttributes []string `json:",omitempty"`
}

// description is what CreateTable says of a table and DescribeTable repeats.
type description struct {
	TableName                 string
	TableArn                  string
	TableId                   string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	ProvisionedThroughput     throughput
	BillingModeSummary        *billing `json:",omitempty"`
	DeletionProtectionEnabled bool
}

type billing struct{ BillingMode string }

type createTableInput struct {
	TableName                 string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	BillingMode               string
	ProvisionedThroughput     *throughput
	GlobalSecondaryIndexes    []indexInput
	LocalSecondaryIndexes     []indexInput
	DeletionProtectionEnabled bool
	StreamSpecification       *struct{ StreamEnabled bool }
}

const arnPrefix = "arn:aws:dynamodb:us-east-1:000000000000:table/"

func (s *Server) createTable(_ *call, in *createTableInput) (any, error) {
	if err := validName(in.TableName); err != nil {
		return nil, err
	}
	if in.StreamSpecification != nil && in.StreamSpecification.StreamEnabled {
		return nil, unimplemented("streams")
	}
	t := &table{created: s.now(), partitions: map[string]*partition{}}
	t.description = description{
		TableName:                 in.TableName,
		TableArn:                  arnPrefix + in.TableName,
		TableId:                   strings.ToLower(rand.Text()),
		AttributeDefinitions:      in.AttributeDefinitions,
		KeySchema:                 in.KeySchema,
		DeletionProtectionEnabled: in.DeletionProtectionEnabled,
	}
	switch {
	case in.BillingMode == "PAY_PER_REQUEST" && in.ProvisionedThroughput != nil:
		return nil, validation(invalidParameters + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
	case in.BillingMode == "PAY_PER_REQUEST":
		t.BillingModeSummary = &billing{"PAY_PER_REQUEST"}
	case in.BillingMode != "" && in.BillingMode != "PROVISIONED":
		return nil, constraint(in.BillingMode, "billingMode", "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]")
	case in.ProvisionedThroughput == nil:
		return nil, validation(invalidParameters + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	default:
		t.ProvisionedThroughput = *in.ProvisionedThroughput
	}
	types, err := attributeTypes(in.AttributeDefinitions)
	if err != nil {
		return nil, err
	}
	if t.keys, err = newSchema(in.KeySchema, types); err != nil {
		return nil, err
	}
	if err := t.addIndexes(in, types); err != nil {
		return nil, err
	}
	if err := allUsed(t, in.AttributeDefinitions); err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[in.TableName] != nil {
		return nil, awsjson.Invalid("ResourceInUseException", "Table already exists: "+in.TableName)
	}
	s.tables[in.TableName] = t
	return map[string]any{"TableDescription": t.describe("CREATING")}, nil
}

func attributeTypes(defs []attributeDefinition) (map[string]string, error) {
	if len(defs) == 0 {
		return nil, required("attributeDefinitions")
	}
	types := map[string]string{}
	for _, d := range defs {
		if !slices.Contains([]string{"B", "N", "S"}, d.AttributeType) {
			return nil, constraint(d.AttributeType, "attributeDefinitions.1.member.attributeType", "Member must satisfy enum value set: [B, N, S]")
		}
		if types[d.AttributeName] != "" {
			return nil, validation("Cannot have two attributes with the same name")
		}
		types[d.AttributeName] = d.AttributeType
	}
	return types, nil
}

// newSchema reads a key schema: a partition key, then perhaps a sort key, both of a defined type.
func newSchema(elements []keyElement, types map[string]string) (schema, error) {
	k := schema{types: map[string]string{}}
	switch {
	case len(elements) == 0:
		return k, required("keySchema")
	case len(elements) > 2:
		return k, constraint(elements, "keySchema", "Member must have length less than or equal to 2")
	case elements[0].KeyType != "HASH":
		return k, validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	case len(elements) == 2 && elements[1].KeyType != "RANGE":
		return k, validation("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	case len(elements) == 2 && elements[0].AttributeName == elements[1].AttributeName:
		return k, validation("Both the Hash Key and the Range Key element in the KeySchema have the same name")
	}
	k.partition = elements[0].AttributeName
	if len(elements) == 2 {
		k.sort = elements[1].AttributeName
	}
	for _, name := range k.names() {
		if types[name] == "" {
			return k, validation(invalidParameters+"Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]", strings.Join(k.names(), ", "), joinKeys(types))
		}
		k.types[name] = types[name]
	}
	return k, nil
}

// allUsed refuses definitions of attributes that are no key of anything.
func allUsed(t *table, defs []attributeDefinition) error {
	used := map[string]string{}
	for _, k := range append([]schema{t.keys}, indexSchemas(t.indexes)...) {
		for _, name := range k.names() {
			used[name] = k.types[name]
		}
	}
	if len(used) == len(defs) {
		return nil
	}
	return validation(invalidParameters + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
}

func joinKeys(m map[string]string) string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// validName checks a table's name.
func validName(name string) error {
	switch {
	case name == "":
		return required("tableName")
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "":
		return constraint(name, "tableName", "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	case len(name) < 3:
		return constraint(name, "tableName", "Member must have length greater than or equal to 3")
	case len(name) > 255:
		return constraint(name, "tableName", "Member must have length less than or equal to 255")
	}
	return nil
}
