package memdynamodb

import (
	"crypto/rand"
	"maps"
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

// description is the part of a TableDescription that CreateTable sets and that does not change.
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

// newSchema reads a key schema: a partition key and at most one sort key, whose types AttributeDefinitions gives.
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
			return k, validation(invalidParameters+"Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]", strings.Join(k.names(), ", "), strings.Join(slices.Sorted(maps.Keys(types)), ", "))
		}
		k.types[name] = types[name]
	}
	return k, nil
}

// allUsed refuses the definition of an attribute that is not a key of the table or of an index.
func allUsed(t *table, defs []attributeDefinition) error {
	used := map[string]bool{}
	for _, name := range t.keys.names() {
		used[name] = true
	}
	for i := range t.indexes {
		for _, name := range t.indexes[i].keys.names() {
			used[name] = true
		}
	}
	if len(used) == len(defs) {
		return nil
	}
	return validation(invalidParameters + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
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

type tableInput struct{ TableName string }

// table returns the table of a request, which may name it by its ARN. The caller holds mu.
func (s *Server) table(name string) (*table, error) {
	if t := s.tables[strings.TrimPrefix(name, arnPrefix)]; t != nil {
		return t, nil // CreateTable has checked the name
	}
	if err := validTable(name); err != nil {
		return nil, err
	}
	return nil, tableNotFound()
}

// validTable checks the name or ARN of a table.
func validTable(name string) error { return validName(strings.TrimPrefix(name, arnPrefix)) }

// describe returns the TableDescription.
func (t *table) describe(status string) any {
	out := struct {
		description
		TableStatus            string
		CreationDateTime       float64
		ItemCount              int
		TableSizeBytes         int
		GlobalSecondaryIndexes []any `json:",omitempty"`
		LocalSecondaryIndexes  []any `json:",omitempty"`
	}{t.description, status, float64(t.created.UnixMilli()) / 1000, t.count, t.bytes, nil, nil}
	for i := range t.indexes {
		ix := &t.indexes[i]
		if ix.local {
			out.LocalSecondaryIndexes = append(out.LocalSecondaryIndexes, ix.describe(t))
		} else {
			out.GlobalSecondaryIndexes = append(out.GlobalSecondaryIndexes, ix.describe(t))
		}
	}
	return out
}

func (s *Server) describeTable(_ *call, in *tableInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Table": t.describe("ACTIVE")}, nil
}

// namedTable is table with the name in the error's message, which the operations on tables have.
func (s *Server) namedTable(name string) (*table, error) {
	t, err := s.table(name)
	if e, ok := err.(*awsjson.Error); ok && e.Code == "ResourceNotFoundException" {
		e.Message += ": Table: " + name + " not found"
	}
	return t, err
}

func (s *Server) deleteTable(_ *call, in *tableInput) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if t.DeletionProtectionEnabled {
		return nil, validation("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	delete(s.tables, t.TableName)
	return map[string]any{"TableDescription": t.describe("DELETING")}, nil
}

type listTablesInput struct {
	ExclusiveStartTableName string
	Limit                   *int
}

type listTablesOutput struct {
	TableNames             []string
	LastEvaluatedTableName string `json:",omitempty"`
}

func (s *Server) listTables(_ *call, in *listTablesInput) (any, error) {
	limit := 100
	if in.Limit != nil {
		limit = *in.Limit
	}
	if limit < 1 || limit > 100 {
		return nil, constraint(limit, "limit", "Member must be between 1 and 100")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := listTablesOutput{TableNames: []string{}}
	for name := range s.tables {
		if name > in.ExclusiveStartTableName {
			out.TableNames = append(out.TableNames, name)
		}
	}
	slices.Sort(out.TableNames)
	if len(out.TableNames) > limit {
		out.TableNames = out.TableNames[:limit]
		out.LastEvaluatedTableName = out.TableNames[limit-1]
	}
	return out, nil
}
