package memdynamodb

import (
	"cmp"
	"errors"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

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
