package memdynamodb

import (
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// pageInput are the members that Query and Scan have in common.
type pageInput struct {
	TableName              string
	IndexName              *string
	Select                 string
	Limit                  *int
	ExclusiveStartKey      attr.Map
	FilterExpression       *string
	ProjectionExpression   *string
	ConsistentRead         bool
	ReturnConsumedCapacity string
	placeholders
}

// pageOutput is the result of Query and of Scan.
type pageOutput struct {
	Items            *[]attr.Map `json:",omitempty"`
	Count            int
	ScannedCount     int
	LastEvaluatedKey attr.Map          `json:",omitempty"`
	ConsumedCapacity *consumedCapacity `json:",omitempty"`
}

// maxPage is the size in the store of the items that a page reads, before the filter.
const maxPage = 1 << 20

// stored is the size that an item counts for in a page: AWS counts its own form of it, where names are short and each 3 KB of the
// item have the sort key once more. The formula is that of architect/dynalite, which found it by experiments on AWS. How AWS stores
// an index is not known.
func stored(item attr.Map, sortKey string) int {
	size, repeated := 0, 18
	for _, f := range item {
		if f.Name == sortKey {
			repeated += attr.Size(f.Value)
			continue
		}
		size += 1 + storedValue(f.Value)
	}
	return 2 + size + (1+(1+size)/3072)*repeated
}

func storedValue(v attr.Value) int {
	size := attr.Size(v)
	switch v := v.(type) {
	case attr.String:
		switch {
		case size >= 16384:
			return size + 3
		case size >= 128:
			return size + 2
		}
		return size + 1
	case attr.Binary, attr.Number:
		return size + 1
	case attr.StringSet:
		return size + len(v) + 1
	case attr.NumberSet:
		return size + len(v) + 1
	case attr.BinarySet:
		return size + len(v) + 1
	case attr.Null:
		return 0
	case attr.List:
		size = 3
		for _, e := range v {
			size += 1 + storedValue(e)
		}
	case attr.Map:
		size = 3 + len(v)
		for _, f := range v {
			size += 1 + storedValue(f.Value)
		}
	}
	return size
}

// source is the table or index that a page is read from.
type source struct {
	table  *table
	index  *index // nil: the table itself
	filter *expr.Condition
	env    *expr.Env
	paths  []expr.Path
	nested []string // the attributes into which the expressions have paths
}

func (src *source) rows() *rows {
	if src.index != nil {
		return src.index.rows
	}
	return src.table.rows
}

func (src *source) keys() *schema { return &src.rows().keys }

// key is the item's key in the form of LastEvaluatedKey: that of an index has the table's key too.
func (src *source) key(item attr.Map) attr.Map {
	k := src.table.keys.of(item)
	if src.index != nil {
		for _, name := range src.index.keys.names() {
			k = k.With(name, item.Get(name))
		}
	}
	return k
}

// valid checks members that Query and Scan have in common.
func (in *pageInput) valid() error {
	var errSelect, errIndex error
	if all := []string{"", "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"}; !slices.Contains(all, in.Select) {
		errSelect = constraint(in.Select, "select", "Member must satisfy enum value set: ["+strings.Join(all[1:], ", ")+"]")
	}
	if in.IndexName != nil {
		errIndex = validNameOf(*in.IndexName, "indexName")
	}
	return constraints(validCapacity(in.ReturnConsumedCapacity), errSelect, validTable(in.TableName), errIndex)
}

// open parses the expressions of a request, finds its table and index, and locks the table. keyCondition is nil for Scan.
func (s *Server) open(in *pageInput, keyCondition *expr.KeyCondition) (*source, error) {
	src := &source{env: in.env()}
	if err := src.expressions(in, keyCondition); err != nil {
		return nil, err
	}
	var err error
	if src.table, err = s.table(in.TableName); err != nil {
		return nil, err
	}
	if err := src.fit(in); err != nil {
		src.table.mu.Unlock()
		return nil, err
	}
	return src, nil
}

// fit finds the index of a request, and refuses what is wrong for the table or index.
func (src *source) fit(in *pageInput) error {
	if in.IndexName != nil {
		if src.index = src.table.index(*in.IndexName); src.index == nil {
			return validation("The table does not have the specified index: %s", *in.IndexName)
		}
		if in.ConsistentRead && !src.index.local {
			return validation("Consistent reads are not supported on global secondary indexes")
		}
	}
	if err := src.table.checkNested(src.nested); err != nil {
		return err
	}
	if err := src.checkStartKey(in.ExclusiveStartKey); err != nil {
		return err
	}
	if err := src.checkProjected(); err != nil {
		return err
	}
	return in.checkSelect(src)
}

func (src *source) expressions(in *pageInput, keyCondition *expr.KeyCondition) (err error) {
	var used []expr.Expression
	if keyCondition != nil {
		used = append(used, keyCondition)
	}
	if in.FilterExpression != nil {
		if src.filter, err = expr.ParseFilter(*in.FilterExpression); err != nil {
			return err
		}
		if err := src.filter.Bind(src.env); err != nil {
			return err
		}
		used = append(used, src.filter)
	}
	if in.ProjectionExpression != nil {
		p, err := expr.ParseProjection(*in.ProjectionExpression)
		if err != nil {
			return err
		}
		if src.paths, err = p.Bind(src.env); err != nil {
			return err
		}
		used = append(used, p)
	}
	src.nested = src.env.Nested(used...)
	return in.check(used...)
}

// checkStartKey refuses a start key that does not have exactly the key attributes of table and index.
func (src *source) checkStartKey(start attr.Map) error {
	if start == nil {
		return nil
	}
	want := map[string]string{}
	for _, k := range []*schema{&src.table.keys, src.keys()} {
		for _, name := range k.names() {
			want[name] = k.types[name]
		}
	}
	for _, f := range start {
		if want[f.Name] != f.Value.Type() {
			return validation("The provided starting key is invalid: The provided key element does not match the schema")
		}
	}
	if len(start) != len(want) {
		return validation("The provided starting key is invalid: The provided key element does not match the schema")
	}
	_, err := src.table.keys.valid(start)
	if src.index != nil && err == nil {
		err = src.index.checkKeys(start)
	}
	if e, ok := errors.AsType[*awsjson.Error](err); ok {
		return validation("The provided starting key is invalid: %s", e.Message)
	}
	return nil
}

// checkProjected refuses a projection of attributes that the index does not have.
func (src *source) checkProjected() error {
	if src.index == nil {
		return nil
	}
	var missing []string
	for _, p := range src.paths {
		if name := p[0].Name; !src.index.projects(name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	switch {
	case missing == nil:
		return nil
	case src.index.local:
		return unimplemented("attributes of the table fetched through a local secondary index")
	}
	return validation(invalidParameters+"Global secondary index %s does not project [%s]", src.index.name, strings.Join(missing, ", "))
}

// checkSelect checks Select against the rest of the request.
func (in *pageInput) checkSelect(src *source) error {
	projected := src.index != nil && src.index.projection.ProjectionType != "ALL"
	switch in.Select {
	case "", "COUNT":
	case "ALL_ATTRIBUTES":
		if projected && !src.index.local {
			return validation(invalidParameters+"Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", src.index.name)
		}
		if projected {
			return unimplemented("attributes of the table fetched through a local secondary index")
		}
	case "ALL_PROJECTED_ATTRIBUTES":
		if src.index == nil {
			return validation("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
		}
	case "SPECIFIC_ATTRIBUTES":
		if src.paths == nil {
			return validation("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
	}
	switch {
	case src.paths == nil || in.Select == "" || in.Select == "SPECIFIC_ATTRIBUTES":
	case in.Select == "COUNT":
		return validation("Cannot specify the ProjectionExpression when choosing to get only the Count")
	default:
		return validation("Cannot specify the ProjectionExpression when choosing to get %s", in.Select)
	}
	return nil
}

// page reads rows, in their order, up to the limit or to maxPage. It returns those for which the filter is true.
func (src *source) page(c *call, in *pageInput, rows iter.Seq[*row]) *pageOutput {
	out := &pageOutput{}
	items := []attr.Map{}
	size, inStore := 0, 0
	for e := range rows {
		item := e.item
		out.ScannedCount++
		size += item.Size()
		inStore += stored(item, src.keys().sort)
		if src.filter == nil || src.filter.Eval(src.env, item) {
			out.Count++
			if src.paths != nil {
				items = append(items, expr.Project(src.paths, item))
			} else {
				items = append(items, item)
			}
		}
		// As in DynamoDB, a page that ends at a limit has a LastEvaluatedKey even if no item follows.
		if in.Limit != nil && out.ScannedCount == *in.Limit || inStore >= maxPage {
			out.LastEvaluatedKey = src.key(item)
			break
		}
	}
	if in.Select != "COUNT" {
		out.Items = &items
	}
	n := readUnits(size, in.ConsistentRead)
	u := units{read: n}
	if src.index != nil {
		u = units{}
		u.index(src.index.name, n)
	}
	c.cost.Units = u.total()
	out.ConsumedCapacity = consumed(in.ReturnConsumedCapacity, src.table, u, false)
	return out
}
