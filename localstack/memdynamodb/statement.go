package memdynamodb

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/internal/jsonscan"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// statementInput is one PartiQL statement, of ExecuteStatement or of a batch.
type statementInput struct {
	Statement                           string
	Parameters                          parameters
	ConsistentRead                      bool
	ReturnValuesOnConditionCheckFailure string
}

// parameters are the values for the question marks of a statement. In a batch, a wrong value fails its own statement and
// not the request. Therefore UnmarshalJSON stores the error, and [statement.parse] returns it.
type parameters struct {
	values attr.List
	err    error
}

func (p *parameters) UnmarshalJSON(data []byte) error {
	p.err = jsonscan.Unmarshal(data, p)
	if data[0] != '[' {
		return p.err // not even a list: the request is wrong
	}
	return nil
}

func (p *parameters) ScanJSON(s *jsonscan.Scanner) error { return p.values.ScanJSON(s) }

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
	tables := s.lock(slices.Values([]string{st.Table}))
	defer tables.unlock()
	if err := tables.locate(&st); err != nil {
		return nil, err
	}
	item, u, err := st.run()
	c.cost.Units = u.total()
	if err != nil {
		return nil, err
	}
	items := []attr.Map{}
	if item != nil {
		items = append(items, *item)
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

// batchExecuteStatement runs statements that are all reads or all writes, each of another item. The error of a statement
// is in its own response.
func (s *Server) batchExecuteStatement(c *call, in *batchStatementInput) (any, error) {
	if err := validCapacity(in.ReturnConsumedCapacity); err != nil {
		return nil, err
	}
	n := len(in.Statements)
	c.cost.Entries = n
	if err := validCount(n, "statements", maxStatements); err != nil {
		return nil, err
	}
	out := batchStatementOutput{Responses: make([]statementResponse, n)}
	all, statements := make([]statement, n), make([]*statement, n) // nil: the statement has failed
	var names []string
	for i := range in.Statements {
		st := &all[i]
		st.inBatch = true
		if err := st.parse(&in.Statements[i]); err != nil {
			out.Responses[i].Error = newStatementError(err)
			continue
		}
		statements[i], names = st, append(names, st.Table)
	}
	tables := s.lock(slices.Values(names))
	defer tables.unlock()
	for i, st := range statements {
		if st == nil {
			continue
		}
		if err := tables.locate(st); err != nil {
			out.Responses[i].Error = newStatementError(err)
			statements[i] = nil
		}
	}
	if err := checkBatch(statements); err != nil {
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
		item, u, err := st.run()
		y.add(st.change.table, u)
		if err != nil {
			r.Error = newStatementError(err)
			continue
		}
		r.Item = item
	}
	c.cost.Units = y.total()
	out.ConsumedCapacity = y.consumed(in.ReturnConsumedCapacity, false)
	return out, nil
}

// checkBatch refuses a batch that mixes reads with writes or has one item twice.
func checkBatch(statements []*statement) error {
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

// newStatementError is an error in the form of a batch's response. Its code is the exception's name without "Exception".
func newStatementError(err error) *statementError {
	e, ok := errors.AsType[*awsjson.Error](toAWS(err))
	if !ok {
		return &statementError{Code: "InternalServerError", Message: err.Error()}
	}
	code := strings.TrimSuffix(e.Code, "Exception")
	if code == "Validation" || code == "Serialization" {
		code = "ValidationError"
	}
	return &statementError{Code: code, Message: e.Message, Item: e.Fields["Item"]}
}

// statement is a statement and the change that it makes to its one item.
type statement struct {
	expr.Statement
	change     change
	consistent bool
	inBatch    bool
}

func (st *statement) reads() bool { return st.Verb == "SELECT" }

var statementVerbs = map[string]verb{"INSERT": put, "UPDATE": update, "DELETE": remove, "SELECT": check}

// parse reads a statement, without a look at its table.
func (st *statement) parse(in *statementInput) (err error) {
	if in.Statement == "" {
		return required("statement")
	}
	if in.Parameters.err != nil {
		return in.Parameters.err
	}
	if err := validOnFailure(in.ReturnValuesOnConditionCheckFailure); err != nil {
		return err
	}
	if st.Statement, err = expr.ParseStatement(in.Statement, in.Parameters.values); err != nil {
		return err
	}
	st.consistent = in.ConsistentRead
	st.change = change{
		verb: statementVerbs[st.Verb], env: &st.Env, item: st.Item, update: st.Update,
		returnOld: in.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
	}
	return nil
}

// locate finds the statement's table and item.
func (l locked) locate(st *statement) (err error) {
	c := &st.change
	if c.table, err = l.table(st.Table); err != nil {
		return err
	}
	if st.Index != "" {
		if c.table.index(st.Index) == nil {
			return validation("The table does not have the specified index") // without its name, which Query has
		}
		return st.several("a SELECT of an index")
	}
	if c.verb != put {
		c.keyFields, c.condition, err = st.Split(c.table.keys.names()...)
		if errors.Is(err, expr.ErrNotOneItem) && st.reads() {
			return st.several("a SELECT of more than one item")
		}
		if err != nil {
			return err
		}
	}
	return c.fit()
}

// several refuses a SELECT that DynamoDB runs as a Query or a Scan, but not in a batch.
func (st *statement) several(what string) error {
	if st.inBatch {
		return validation("Select statements within BatchExecuteStatement must specify the primary key in the where clause.")
	}
	return unimplemented(what)
}

// run performs the statement and returns the item that it reads or is to return, if any. An INSERT fails where an item
// is, an UPDATE where none is.
func (st *statement) run() (item *attr.Map, u units, err error) {
	c := &st.change
	if st.reads() {
		err = c.evaluate()
	} else {
		err = c.attempt()
	}
	u = c.units()
	switch {
	case err == errConflict:
		return nil, u, err
	case st.reads():
		u = units{read: readUnits(c.old.Size(), st.consistent)}
		if err != nil || c.old == nil { // a false condition is no error of a SELECT
			return nil, u, nil
		}
		if st.Paths == nil {
			return &c.old, u, nil
		}
		part := expr.Project(st.Paths, c.old)
		return &part, u, nil
	case c.verb == put && c.old != nil:
		return nil, u, awsjson.Invalid("DuplicateItemException", "Duplicate primary key exists in table")
	case c.verb == update && c.old == nil, err == errCondition:
		return nil, units{write: u.write}, c.conditionFailed()
	case err != nil:
		return nil, u, err
	}
	c.apply()
	return c.returned(st.Returning), u, nil
}
