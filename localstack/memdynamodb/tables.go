package memdynamodb

import (
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

type tableInput struct{ TableName string }

// table returns the table of a request, which may name it by its ARN. The caller holds mu.
func (s *Server) table(name string) (*table, error) {
	if t := s.tables[strings.TrimPrefix(name, arnPrefix)]; t != nil {
		return t, nil // whose name was valid when it was created
	}
	if err := validTable(name); err != nil {
		return nil, err
	}
	return nil, tableNotFound()
}

// validTable checks a table's name or ARN.
func validTable(name string) error { return validName(strings.TrimPrefix(name, arnPrefix)) }

// describe is a TableDescription.
func (t *table) describe(status string) any {
	type full struct {
		description
		TableStatus            string
		CreationDateTime       float64
		ItemCount              int
		TableSizeBytes         int
		GlobalSecondaryIndexes []any `json:",omitempty"`
		LocalSecondaryIndexes  []any `json:",omitempty"`
	}
	out := full{t.description, status, float64(t.created.UnixMilli()) / 1000, t.count, t.bytes, nil, nil}
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

// namedTable is table for the operations on tables themselves, whose message names the table.
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
