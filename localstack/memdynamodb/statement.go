package memdynamodb

import (
	"encoding/json"
	"errors"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// statementInput is one PartiQL statement, of its own call or of a batch.
type statementInput struct {
	Statement                           string
	Parameters                          []json.RawMessage
	ConsistentRead                      bool
	ReturnValuesOnConditionCheckFailure string
}

type executeStatementInput struct {
	statementInput
	ReturnConsumedCapacity string
	Limit                  *int
	NextToken              *string
}

type executeStatementOutput struct {
	Items            []attr.Map
	ConsumedCapacity *consumedCapacity `json:",omitempty"`
}

// statement is a statement that is ready to run on its one item.
type statement struct {
	*expr.Statement
	change     *change
	consistent bool
}

func (st *statement) reads() bool { return st.Verb == "SELECT" }

// newStatement parses a statement and finds its item. The caller holds mu.
func (s *Server) newStatement(in *statementInput) (*statement, error) {
	if in.Statement == "" {
		return nil, required("statement")
	}
	var params []attr.Value
	for _, raw := range in.Parameters {
		v, err := attr.Decode(raw)
		if err != nil {
			return nil, err
		}
		params = append(params, v)
	}
	parsed, err := expr.ParseStatement(in.Statement, params)
	if err != nil {
		return nil, err
	}
	t, err := s.table(parsed.Table)
	if err != nil {
		return nil, err
	}
	c := &change{table: t, env: parsed.Env, put: parsed.Item, update: parsed.Update, updates: parsed.Update != nil, deletes: parsed.Verb == "DELETE"}
	c.returnOld = in.ReturnValuesOnConditionCheckFailure == "ALL_OLD"
	if c.put == nil {
		c.keyFields, c.condition, err = parsed.Split(t.keys.names()...)
		if errors.Is(err, expr.ErrNotOneItem) && parsed.Verb == "SELECT" {
			return nil, unimplemented("a SELECT of more than one item") // to DynamoDB a Query or Scan, no mistake
		}
		if err != nil {
			return nil, err
		}
	}
	return &statement{parsed, c, in.ConsistentRead}, c.fit()
}

// run performs the statement: INSERT only where no item is, UPDATE only where one is.
func (st *statement) run() (items []attr.Map, u units, err error) {
	c := st.change
	err = c.evaluate()
	u = c.units()
	switch {
	case st.reads():
		u = units{read: readUnits(c.old.Size(), st.consistent)}
		if err == nil && c.old != nil {
			item := c.old
			if st.Paths != nil {
				item = expr.Project(st.Paths, item)
			}
			items = []attr.Map{item}
		}
		return items, u, nil
	case st.Verb == "INSERT" && c.old != nil:
		return nil, u, awsjson.Invalid("DuplicateItemException", "Duplicate primary key exists in table")
	case st.Verb == "UPDATE" && c.old == nil, err == errCondition:
		return nil, units{write: u.write}, c.conditionFailed()
	case err != nil:
		return nil, u, err
	}
	c.apply()
	if m := c.returned(st.Returning); m != nil {
		items = []attr.Map{*m}
	}
	return items, u, nil
}

func (s *Server) executeStatement(c *call, in *executeStatementInput) (any, error) {
	if err := validCapacity(in.ReturnConsumedCapacity); err != nil {
		return nil, err
	}
	if in.NextToken != nil {
		return nil, validation("Given NextToken is invalid")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.newStatement(&in.statementInput)
	if err != nil {
		return nil, err
	}
	items, u, err := st.run()
	c.cost.Units = u.total()
	if err != nil {
		return nil, err
	}
	if items == nil {
		items = []attr.Map{}
	}
	return executeStatementOutput{items, consumed(in.ReturnConsumedCapacity, st.change.table, u, false)}, nil
}
