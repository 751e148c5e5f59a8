package memdynamodb

import (
	"errors"
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

// maxPage is the size of the items that a page reads, before the filter.
const maxPage = 1 << 20

// source is the table or index that a page is read from.
type source struct {
	table  *table
	index  *index // nil: the table itself
	filter *expr.Condition
	env    *expr.Env
	paths  []expr.Path
	nested []string // the attributes into which the expressions have paths
}

func (src *source) keys() *schema {
	if src.index != nil {
		return &src.index.keys
	}
	return &src.table.keys
}

// item is the part of a table's item that the source has, nil if the item is not in the source.
func (src *source) item(item attr.Map) attr.Map {
	if src.index != nil {
		return src.index.project(src.table, item)
	}
	return item
}

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

// open finds the table and index of a request and parses its expressions. keyCondition is nil for Scan. The caller holds
// mu.
func (s *Server) open(in *pageInput, keyCondition *expr.KeyCondition) (*source, error) {
	if err := validCapacity(in.ReturnConsumedCapacity); err != nil {
		return nil, err
	}
	if in.Limit != nil && *in.Limit < 1 {
		return nil, constraint(*in.Limit, "limit", "Member must have value greater than or equal to 1")
	}
	src := &source{env: in.env()}
	if err := src.expressions(in, keyCondition); err != nil {
		return nil, err
	}
	var err error
	if src.table, err = s.table(in.TableName); err != nil {
		return nil, err
	}
	if in.IndexName != nil {
		if src.index = src.table.index(*in.IndexName); src.index == nil {
			return nil, validation("The table does not have the specified index: %s", *in.IndexName)
		}
		if in.ConsistentRead && !src.index.local {
			return nil, validation("Consistent reads are not supported on global secondary indexes")
		}
	}
	if err := src.table.checkNested(src.nested); err != nil {
		return nil, err
	}
	if err := src.checkStartKey(in.ExclusiveStartKey); err != nil {
		return nil, err
	}
	if err := src.checkProjected(); err != nil {
		return nil, err
	}
	return src, in.checkSelect(src)
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
		if name := p[0].Name; !src.index.projects(src.table, name) && !slices.Contains(missing, name) {
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
	default:
		return constraint(in.Select, "select", "Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]")
	}
	if src.paths != nil && in.Select != "" && in.Select != "SPECIFIC_ATTRIBUTES" {
		return validation("Cannot specify the ProjectionExpression when choosing to get %s", in.Select)
	}
	return nil
}

// page reads candidates, in their order, up to the limit or to maxPage. It returns those for which the filter is true.
func (src *source) page(c *call, in *pageInput, candidates []attr.Map) *pageOutput {
	out := &pageOutput{}
	items := []attr.Map{}
	size := 0
	for i, item := range candidates {
		out.ScannedCount++
		size += item.Size()
		if src.filter == nil || src.filter.Eval(src.env, item) {
			out.Count++
			if src.paths != nil {
				items = append(items, expr.Project(src.paths, item))
			} else {
				items = append(items, item)
			}
		}
		// As in DynamoDB, a page that ends at its limit has a LastEvaluatedKey even if no item follows.
		full := in.Limit != nil && out.ScannedCount == *in.Limit || size >= maxPage && i+1 < len(candidates)
		if full {
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

// after returns the candidates behind the start key. compare orders a candidate relative to that key.
func after(candidates []attr.Map, compare func(attr.Map) int) []attr.Map {
	at, found := slices.BinarySearchFunc(candidates, 0, func(item attr.Map, _ int) int { return compare(item) })
	if found {
		at++
	}
	return candidates[at:]
}
