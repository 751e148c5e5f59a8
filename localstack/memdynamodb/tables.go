package memdynamodb

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

type keyElement struct{ AttributeName, KeyType string }
type attributeDefinition struct{ AttributeName, AttributeType string }

// description is the part of a TableDescription that does not come from the items.
type description struct {
	TableName                 string
	TableArn                  string
	TableId                   string
	AttributeDefinitions      []attributeDefinition `json:",omitempty"`
	KeySchema                 []keyElement          `json:",omitempty"`
	ProvisionedThroughput     capacityUnits
	BillingModeSummary        *billing             `json:",omitempty"`
	TableClassSummary         *tableClass          `json:",omitempty"`
	SSEDescription            *encryption          `json:",omitempty"`
	StreamSpecification       *streamSpecification `json:",omitempty"`
	LatestStreamArn           string               `json:",omitempty"` // of a disabled stream too
	LatestStreamLabel         string               `json:",omitempty"`
	DeletionProtectionEnabled bool
}

type createTableInput struct {
	TableName                 string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	BillingMode               string
	ProvisionedThroughput     *throughput
	GlobalSecondaryIndexes    *[]indexInput
	LocalSecondaryIndexes     *[]localIndexInput
	DeletionProtectionEnabled bool
	StreamSpecification       *streamInput
	SSESpecification          *encryptionInput
	TableClass                string
	Tags                      []tag
}

const arnPrefix = "arn:aws:dynamodb:us-east-1:000000000000:table/"

func (s *Server) createTable(_ *call, in *createTableInput) (any, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	now := s.now()
	t := &table{created: now, partitions: map[string]*partition{}, ongoing: map[key]bool{}}
	t.description = description{
		TableName:                 in.TableName,
		TableArn:                  arnPrefix + in.TableName,
		TableId:                   newUUID(),
		AttributeDefinitions:      in.AttributeDefinitions,
		KeySchema:                 in.KeySchema,
		DeletionProtectionEnabled: in.DeletionProtectionEnabled,
		SSEDescription:            in.SSESpecification.described(),
	}
	if in.TableClass != "" {
		t.TableClassSummary = &tableClass{TableClass: in.TableClass}
	}
	if in.BillingMode == onDemand {
		t.BillingModeSummary = &billing{onDemand, seconds(now)}
	} else {
		t.ProvisionedThroughput.set(in.ProvisionedThroughput)
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
	if t.tags, err = merged(nil, in.Tags); err != nil {
		return nil, err
	}

	s.lock()
	defer s.mu.Unlock()
	if s.tables[in.TableName] != nil {
		return nil, awsjson.Invalid("ResourceInUseException", "Table already exists: "+in.TableName)
	}
	s.tables[in.TableName] = t
	s.setStream(t, in.StreamSpecification)
	return map[string]any{"TableDescription": t.describe("CREATING", now)}, nil
}

// validate checks what needs no look at the keys.
func (in *createTableInput) validate() error {
	if err := validName(in.TableName); err != nil {
		return err
	}
	if err := validBilling(in.BillingMode); err != nil {
		return err
	}
	switch pt := in.ProvisionedThroughput; {
	case in.BillingMode == onDemand && pt != nil:
		return validation(invalidParameters + noUnitsOnDemand)
	case in.BillingMode != onDemand && pt == nil:
		return validation(invalidParameters + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	case pt != nil:
		if err := pt.valid("provisionedThroughput"); err != nil {
			return err
		}
	}
	if err := in.StreamSpecification.valid(); err != nil {
		return err
	}
	if err := validClass(in.TableClass); err != nil {
		return err
	}
	return in.SSESpecification.valid()
}

// newUUID returns a random UUID, of version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // returns no errors
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// validName checks a table's name.
func validName(name string) error { return validNameOf(name, "tableName") }

// validNameOf checks the name of a table or index. member is its path in the request.
func validNameOf(name, member string) error {
	switch {
	case name == "":
		return required(member)
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "":
		return constraint(name, member, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	case len(name) < 3:
		return constraint(name, member, "Member must have length greater than or equal to 3")
	case len(name) > 255:
		return constraint(name, member, "Member must have length less than or equal to 255")
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

// tableDescription is the TableDescription of a response.
type tableDescription struct {
	description
	TableStatus            string
	CreationDateTime       float64 `json:",omitempty"`
	ItemCount              int
	TableSizeBytes         int
	GlobalSecondaryIndexes []map[string]any `json:",omitempty"`
	LocalSecondaryIndexes  []map[string]any `json:",omitempty"`
}

func (t *table) describe(status string, now time.Time) *tableDescription {
	out := &tableDescription{description: t.description, TableStatus: status, CreationDateTime: seconds(t.created), ItemCount: t.count, TableSizeBytes: t.bytes}
	out.ProvisionedThroughput = t.ProvisionedThroughput.at(now)
	for i := range t.indexes {
		ix := &t.indexes[i]
		if ix.local {
			out.LocalSecondaryIndexes = append(out.LocalSecondaryIndexes, ix.describe(t))
			continue
		}
		d := ix.describe(t)
		d["IndexStatus"], d["ProvisionedThroughput"] = "ACTIVE", ix.throughput.at(now)
		if status == "CREATING" {
			d["IndexStatus"] = status
		}
		out.GlobalSecondaryIndexes = append(out.GlobalSecondaryIndexes, d)
	}
	return out
}

func (s *Server) describeTable(_ *call, in *tableInput) (any, error) {
	s.lock()
	defer s.mu.Unlock()
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Table": t.describe("ACTIVE", s.now())}, nil
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
	s.lock()
	defer s.mu.Unlock()
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if t.DeletionProtectionEnabled {
		return nil, validation("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	delete(s.tables, t.TableName)
	s.disableStream(t)
	// AWS leaves out the schema, the indexes and the time of creation.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DeleteTable.html#API_DeleteTable_Examples
	out := &tableDescription{description: t.description, TableStatus: "DELETING", ItemCount: t.count, TableSizeBytes: t.bytes}
	out.AttributeDefinitions, out.KeySchema, out.ProvisionedThroughput = nil, nil, t.ProvisionedThroughput.at(s.now())
	return map[string]any{"TableDescription": out}, nil
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
	s.lock()
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
