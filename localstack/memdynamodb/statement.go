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

// parameters are checked here and not before: one that is wrong is its statement's error, not the request's.
func (in *statementInput) parameters() ([]attr.Value, error) {
	values := make([]attr.Value, len(in.Parameters))
	for i, raw := range in.Parameters {
		var err error
		if values[i], err = attr.Decode(raw); err != nil {
			return nil, err
		}
	}
	return values, nil
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

// statement is a statement on its one item.
type statement struct {
	expr.Statement
	change     change
	consistent bool
}

func (st *statement) reads() bool { return st.Verb == "SELECT" }

// parse reads a statement. It needs no lock.
func (st *statement) parse(in *statementInput) error {
	if in.Statement == "" {
		return required("statement")
	}
	params, err := in.parameters()
	if err != nil {
		return err
	}
	if st.Statement, err = expr.ParseStatement(in.Statement, params); err != nil {
		return err
	}
	st.consistent = in.ConsistentRead
	c := &st.change
	c.env, c.put, c.update = &st.Env, st.Item, st.Update
	c.updates, c.deletes = st.Update != nil, st.Verb == "DELETE"
	c.returnOld = in.ReturnValuesOnConditionCheckFailure == "ALL_OLD"
	return nil
}

// locate finds the statement's table and item. The caller holds mu.
func (s *Server) locate(st *statement) (err error) {
	c := &st.change
	if c.table, err = s.table(st.Table); err != nil {
		return err
	}
	if c.put == nil {
		c.keyFields, c.condition, err = st.Split(c.table.keys.names()...)
		if errors.Is(err, expr.ErrNotOneItem) && st.reads() {
			return unimplemented("a SELECT of more than one item") // to DynamoDB a Query or Scan, no mistake
		}
		if err != nil {
			return err
		}
	}
	return c.fit()
}

// run performs the statement: INSERT only where no item is, UPDATE only where one is.
func (st *statement) run() (items []attr.Map, u units, err error) {
	c := &st.change
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
	var st statement
	if err := st.parse(&in.statementInput); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.locate(&st); err != nil {
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
