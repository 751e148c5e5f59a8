package memdynamodb

import (
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
	"regexp"
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

// tableARN is the part of any table's ARN before its name. That of the server's own tables is Server.tableARN.
var tableARN = regexp.MustCompile(`^arn:aws:dynamodb:[a-z0-9-]+:[0-9]{12}:table/`)

func (s *Server) createTable(_ *call, in *createTableInput) (any, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	now := s.now()
	t := &table{srv: s, at: now, ongoing: map[key]bool{}, tableState: tableState{created: now}}
	t.description = description{
		TableName:                 in.TableName,
		TableArn:                  s.tableARN + in.TableName,
		TableId:                   newUUID(),
		AttributeDefinitions:      in.AttributeDefinitions,
		KeySchema:                 in.KeySchema,
		DeletionProtectionEnabled: in.DeletionProtectionEnabled,
		SSEDescription:            in.SSESpecification.described(s.tableARN),
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
	t.rows = &rows{keys: t.keys}
	if err := t.addIndexes(in, types); err != nil {
		return nil, err
	}
	if err := allUsed(&t.tableState, in.AttributeDefinitions); err != nil {
		return nil, err
	}
	if t.tags, err = merged(nil, in.Tags); err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[in.TableName] != nil {
		return nil, awsjson.Invalid("ResourceInUseException", "Table already exists: "+in.TableName)
	}
	s.tables[in.TableName] = t
	t.setStream(in.StreamSpecification)
	return map[string]any{"TableDescription": t.describe("CREATING", now)}, nil
}

// validate checks what needs no look at the keys.
func (in *createTableInput) validate() error {
	if in.TableName == "" {
		return validation("The parameter 'TableName' is required but was not present in the request")
	}
	var errUnits error
	switch pt := in.ProvisionedThroughput; {
	case in.BillingMode == onDemand && pt != nil:
		errUnits = validation(invalidParameters + noUnitsOnDemand)
	case in.BillingMode != onDemand && pt == nil:
		errUnits = validation(invalidParameters + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	}
	return constraints(
		validDefinitions(in.AttributeDefinitions), validName(in.TableName), validBilling(in.BillingMode),
		errUnits, in.ProvisionedThroughput.valid("provisionedThroughput"), validKeySchema(in.KeySchema, ""), in.indexConstraints(),
		in.StreamSpecification.valid(), validClass(in.TableClass), in.SSESpecification.valid(),
	)
}

// indexConstraints checks the members of indexes, those of global ones first: paritysuite/dynamodb-conformance,
// validation-ordering/createTable.test.ts. AWS finds their other errors after those of the rest of the request.
func (in *createTableInput) indexConstraints() error {
	var errs []error
	if in.GlobalSecondaryIndexes != nil {
		for i := range *in.GlobalSecondaryIndexes {
			errs = append(errs, onlyConstraints((*in.GlobalSecondaryIndexes)[i].valid(globalMember(i))))
		}
	}
	if in.LocalSecondaryIndexes != nil {
		for i := range *in.LocalSecondaryIndexes {
			errs = append(errs, onlyConstraints((*in.LocalSecondaryIndexes)[i].valid(localMember(i))))
		}
	}
	return constraints(errs...)
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
	if name == "" {
		return required(member)
	}
	var errPattern, errLength error
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
		errPattern = constraint(name, member, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	}
	switch {
	case len(name) < 3:
		errLength = constraint(name, member, "Member must have length greater than or equal to 3")
	case len(name) > 255:
		errLength = constraint(name, member, "Member must have length less than or equal to 255")
	}
	return constraints(errPattern, errLength)
}

type tableInput struct{ TableName string }

// find returns the table of a request, which may name it by its ARN.
func (s *Server) find(name string) (*table, error) {
	s.mu.Lock()
	t := s.tables[strings.TrimPrefix(name, s.tableARN)]
	s.mu.Unlock()
	if t != nil {
		return t, nil // CreateTable has checked the name
	}
	if err := validTable(name); err != nil {
		return nil, err
	}
	return nil, tableNotFound()
}

// table is find, with the table locked.
func (s *Server) table(name string) (*table, error) {
	for {
		t, err := s.find(name)
		if err != nil {
			return nil, err
		}
		if t.lock(); !t.deleted {
			return t, nil
		}
		t.mu.Unlock() // deleted meanwhile
	}
}

// locked are the tables that a call has locked, by their names.
type locked map[string]*table

// lock locks those of the named tables that exist.
func (s *Server) lock(names iter.Seq[string]) locked {
	wanted := map[string]bool{}
	for name := range names {
		wanted[strings.TrimPrefix(name, s.tableARN)] = true
	}
	all := locked{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if t, err := s.table(name); err == nil {
			all[name] = t
		}
	}
	return all
}

func (l locked) unlock() {
	for _, t := range l {
		t.mu.Unlock()
	}
}

// table returns the table of a request, which may name it by its ARN.
func (l locked) table(name string) (*table, error) {
	if t := l[nameOf(name)]; t != nil && (name == t.TableName || name == t.TableArn) {
		return t, nil
	}
	if err := validTable(name); err != nil {
		return nil, err
	}
	return nil, tableNotFound()
}

// validTable checks the name or ARN of a table, which may be in another account or Region.
func validTable(name string) error { return validName(nameOf(name)) }

// validTables checks the names or ARNs that are the keys of a batch's RequestItems. AWS shows the whole map: shown returns it for a
// name that is wrong.
func validTables(names iter.Seq[string], shown func(name string) string) error {
	for name := range names {
		if validTable(name) != nil {
			return constraint(shown(name), "requestItems", "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]")
		}
	}
	return nil
}

// nameOf returns the name of a table from its name or ARN.
func nameOf(table string) string {
	if !strings.HasPrefix(table, "arn:") {
		return table // as in most requests
	}
	return table[len(tableARN.FindString(table)):]
}

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
	out := &tableDescription{description: t.description, TableStatus: status, CreationDateTime: seconds(t.created), ItemCount: t.rows.count, TableSizeBytes: t.rows.bytes}
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
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	return map[string]any{"Table": t.describe("ACTIVE", t.at)}, nil
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
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	if t.DeletionProtectionEnabled {
		return nil, validation("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	s.mu.Lock()
	delete(s.tables, t.TableName)
	t.disableStream()
	s.mu.Unlock()
	t.deleted = true
	// AWS leaves out the schema, the indexes and the time of creation.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DeleteTable.html#API_DeleteTable_Examples
	out := &tableDescription{description: t.description, TableStatus: "DELETING", ItemCount: t.rows.count, TableSizeBytes: t.rows.bytes}
	out.AttributeDefinitions, out.KeySchema, out.ProvisionedThroughput = nil, nil, t.ProvisionedThroughput.at(t.at)
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
	limit, err := pageLimit(in.Limit, 100)
	if err != nil {
		return nil, err
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
