package memdynamodb

import (
	"cmp"
	"errors"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// statementInput is one PartiQL statement, of its own call or of a batch.
type statementInput struct {
	Statement                           string
	Parameters                          parameters
	ConsistentRead                      bool
	ReturnValuesOnConditionCheckFailure string
}

// parameters are the values that the question marks of a statement stand for. A value that is wrong is the error of its
// statement, not of the whole request: UnmarshalJSON keeps that error for [statement.parse].
type parameters struct {
	values []attr.Value
	err    error
}

func (p *parameters) UnmarshalJSON(data []byte) error {
	p.values, p.err = attr.DecodeList(data)
	return nil
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
	if in.Parameters.err != nil {
		return in.Parameters.err
	}
	var err error
	if st.Statement, err = expr.ParseStatement(in.Statement, in.Parameters.values); err != nil {
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

type batchStatementInput struct {
	Statements             []statementInput
	ReturnConsumedCapacity string
}

type batchStatementOutput struct {
	Responses        []statementResponse
	ConsumedCapacity []*consumedCapacity `json:",omitempty"`
}

type statementResponse struct {
	Error     *statementError `json:",omitempty"`
	TableName string          `json:",omitempty"`
	Item      *attr.Map       `json:",omitempty"`
}

type statementError struct {
	Code    string
	Message string
	Item    any `json:",omitempty"`
}

const maxStatements = 25

// batchExecuteStatement runs statements that are all reads or all writes, each of another item. One that fails has its
// error in its own response.
func (s *Server) batchExecuteStatement(c *call, in *batchStatementInput) (any, error) {
	if err := validCapacity(in.ReturnConsumedCapacity); err != nil {
		return nil, err
	}
	n := len(in.Statements)
	c.cost.Entries = n
	if n == 0 || n > maxStatements {
		return nil, constraint("[...]", "statements", "Member must have length between 1 and 25")
	}
	out := batchStatementOutput{Responses: make([]statementResponse, n)}
	statements := make([]*statement, n) // nil where it failed
	all := make([]statement, n)
	for i := range all {
		if err := all[i].parse(&in.Statements[i]); err != nil {
			out.Responses[i].Error = statementFailed(err)
			continue
		}
		statements[i] = &all[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, st := range statements {
		if st == nil {
			continue
		}
		if err := s.locate(st); err != nil {
			out.Responses[i].Error = statementFailed(err)
			statements[i] = nil
		}
	}
	if err := alike(statements); err != nil {
		return nil, err
	}
	var y tally
	for i, st := range statements {
		if st == nil {
			continue
		}
		r := &out.Responses[i]
		r.TableName = st.Table
		if c.fails(i) {
			code := cmp.Or(c.rule.Code, "TransactionConflict")
			r.Error = &statementError{Code: code, Message: cmp.Or(reasonMessages[code], "injected fault")}
			continue
		}
		items, u, err := st.run()
		y.add(st.change.table, u)
		if err != nil {
			r.Error = statementFailed(err)
		} else if len(items) > 0 {
			r.Item = &items[0]
		}
	}
	c.cost.Units = y.total()
	out.ConsumedCapacity = y.consumed(in.ReturnConsumedCapacity, false)
	return out, nil
}

// alike refuses a call that mixes reads with writes or has one item twice.
func alike(statements []*statement) error {
	var first *statement
	for i, st := range statements {
		if st == nil {
			continue
		}
		if first == nil {
			first = st
		}
		if first.reads() != st.reads() {
			return validation("Statements in a BatchExecuteStatement call must be either all reads or all writes")
		}
		for _, o := range statements[:i] {
			if o != nil && o.change.key == st.change.key && o.change.table == st.change.table {
				return validation("Provided list of item keys contains duplicates")
			}
		}
	}
	return nil
}

// statementFailed is an error as a response has it: its code is the exception's name without "Exception".
func statementFailed(err error) *statementError {
	e, ok := errors.AsType[*awsjson.Error](answerError(err))
	if !ok {
		return &statementError{Code: "InternalServerError", Message: err.Error()}
	}
	code := strings.TrimSuffix(e.Code, "Exception")
	if code == "Validation" || code == "Serialization" {
		code = "ValidationError"
	}
	return &statementError{Code: code, Message: e.Message, Item: e.Fields["Item"]}
}
