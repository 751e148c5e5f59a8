package memdynamodb

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

var _ awsjson.Appender = batchStatementOutput{}

// AppendJSON implements [awsjson.Appender]: a batch of statements is most of what a busy server answers. What holds more
// than successes, errors and the units of a table is left to encoding/json.
func (out batchStatementOutput) AppendJSON(b []byte) ([]byte, bool) {
	const perEntry = 32 // and what an error needs beyond it
	b = slices.Grow(b, perEntry*(len(out.Responses)+len(out.ConsumedCapacity)+2))
	b = append(b, `{"Responses":[`...)
	for i := range out.Responses {
		if !out.Responses[i].plain() {
			return nil, false
		}
		b = out.Responses[i].append(separate(b, i))
	}
	b = append(b, ']')
	if len(out.ConsumedCapacity) > 0 {
		b = append(b, `,"ConsumedCapacity":[`...)
		for i, c := range out.ConsumedCapacity {
			if !c.plain() {
				return nil, false
			}
			b = c.append(separate(b, i))
		}
		b = append(b, ']')
	}
	return append(b, '}'), true
}

func (r *statementResponse) plain() bool {
	return r.Item == nil && (r.Error == nil || r.Error.Item == nil)
}

// append writes a plain one.
func (r *statementResponse) append(b []byte) []byte {
	b = append(b, '{')
	if e := r.Error; e != nil {
		b = appendText(append(b, `"Error":{"Code":`...), e.Code)
		b = appendText(append(b, `,"Message":`...), e.Message)
		b = append(b, '}')
	}
	if r.TableName != "" {
		if r.Error != nil {
			b = append(b, ',')
		}
		b = appendText(append(b, `"TableName":`...), r.TableName)
	}
	return append(b, '}')
}

// plain reports whether it has the units of TOTAL alone. Some millions of them are still written without an exponent.
func (c *consumedCapacity) plain() bool {
	return c.capacity == capacity{CapacityUnits: c.CapacityUnits} && c.CapacityUnits < 1<<30 &&
		c.Table == nil && c.GlobalSecondaryIndexes == nil && c.LocalSecondaryIndexes == nil
}

// append writes a plain one.
func (c *consumedCapacity) append(b []byte) []byte {
	b = appendText(append(b, `{"TableName":`...), c.TableName)
	b = strconv.AppendFloat(append(b, `,"CapacityUnits":`...), c.CapacityUnits, 'f', -1, 64)
	return append(b, '}')
}

// separate appends the comma before all elements but the first.
func separate(b []byte, i int) []byte {
	if i == 0 {
		return b
	}
	return append(b, ',')
}

// appendText is s as encoding/json writes it, which escapes more than JSON has to.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			quoted, _ := json.Marshal(s) // of a string: no error
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
