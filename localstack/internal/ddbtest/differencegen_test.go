package ddbtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// program is a table and requests on it. All of it is drawn before anything is sent.
type program struct {
	table    []string
	indexes  []wire // global
	requests []wireRequest
}

// wireRequest is a request without its table's name.
type wireRequest struct {
	op string
	in map[string]any
}

func (r wireRequest) body(table string) string {
	in := maps.Clone(r.in)
	if actions, ok := in["TransactItems"].([]map[string]map[string]any); ok {
		var named []map[string]map[string]any
		for _, a := range actions {
			for verb, action := range a {
				action = maps.Clone(action)
				action["TableName"] = table
				named = append(named, map[string]map[string]any{verb: action})
			}
		}
		in["TransactItems"] = named
	} else {
		in["TableName"] = table
	}
	raw, _ := json.Marshal(in) // maps, lists and strings
	return string(raw)
}

func (r wireRequest) String() string { return r.op + " " + r.body("T") }

type wire = map[string]any

var genProgram = rapid.Custom(func(t *rapid.T) program {
	p := program{table: rapid.SampledFrom([][]string{{"id:S"}, {"id:S", "pos:N"}, {"id:N"}, {"id:B", "pos:S"}}).Draw(t, "table")}
	g := &gen{T: t, table: p.table}
	if g.chance(50) {
		p.indexes = []wire{g.index("by_one")}
		for range 3 { // to read from the index
			p.requests = append(p.requests, wireRequest{"PutItem", wire{"Item": g.item()}})
		}
	}
	for range rapid.IntRange(1, 12).Draw(t, "requests") {
		p.requests = append(p.requests, g.request())
	}
	return p
})

// gen draws the parts of requests.
type gen struct {
	*rapid.T
	table  []string
	values wire // of the request's placeholders
	names  map[string]string

	indexes map[string][]string // the keys of those that were drawn
}

func pick[T any](g *gen, from ...T) T { return rapid.SampledFrom(from).Draw(g.T, "pick") }

func (g *gen) chance(percent int) bool { return rapid.IntRange(1, 100).Draw(g.T, "%") <= percent }

func (g *gen) key() wire {
	key := wire{}
	for _, k := range g.table {
		name, kind, _ := strings.Cut(k, ":")
		text := map[string][]string{"S": {"a", "a", "a", "b", "ab"}, "N": {"1", "1", "1", "2", "10"}, "B": {"YQ==", "YQ==", "Yg=="}}[kind]
		key[name] = wire{kind: pick(g, text...)}
	}
	return key
}

var attributeNames = []string{"a1", "b1", "c1", "d1"}

func (g *gen) item() wire {
	i := g.key()
	for _, name := range attributeNames {
		if g.chance(70) {
			i[name] = g.value(2)
		}
	}
	if g.indexes != nil && g.chance(70) { // for keys of indexes
		i["a1"], i["b1"] = wire{"S": pick(g, "a", "a", "b")}, wire{"N": pick(g, "1", "1", "2", "10")}
	}
	if g.chance(60) { // for paths
		i["c1"] = wire{"L": []any{g.value(0), g.value(1), g.value(1)}}
		i["d1"] = wire{"M": wire{"x": g.value(1), "y": g.value(0)}}
	}
	return i
}

func (g *gen) value(depth int) wire {
	kinds := []string{"N", "N", "N", "S", "S", "B", "BOOL", "NULL", "SS", "NS", "BS"}
	if depth > 0 {
		kinds = append(kinds, "L", "L", "M", "M")
	}
	switch kind := pick(g, kinds...); kind {
	case "N":
		return wire{"N": g.number()}
	case "S":
		return wire{"S": pick(g, "", "a", "b", "ab", "é", "10")}
	case "B":
		return wire{"B": pick(g, "", "YQ==", "YWI=")}
	case "BOOL":
		return wire{"BOOL": pick(g, true, false)}
	case "NULL":
		return wire{"NULL": true}
	case "SS":
		return wire{"SS": g.some("a", "b", "ab")}
	case "NS":
		return wire{"NS": g.some("1", "2", "10")}
	case "BS":
		return wire{"BS": g.some("YQ==", "YWI=")}
	case "L":
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(g.T, "length") {
			list = append(list, g.value(depth-1))
		}
		return wire{"L": list}
	default:
		m := wire{}
		for _, name := range g.some("x", "y", "z") {
			m[name] = g.value(depth - 1)
		}
		return wire{"M": m}
	}
}

func (g *gen) scalar(int) wire {
	return pick(g, wire{"N": "1"}, wire{"N": "2"}, wire{"N": "0"}, wire{"S": "a"}, wire{"S": "ab"}, wire{"B": "YQ=="})
}

func (g *gen) number() string {
	return pick(g, "0", "1", "2", "-1", "0.5", "10", "1e2", "123456789012345678901234567890", "-0.000001", "3.0")
}

// some draws one or more of the texts, each at most once.
func (g *gen) some(from ...string) []string {
	out := slices.DeleteFunc(slices.Clone(from), func(string) bool { return g.chance(40) })
	if len(out) == 0 {
		return from[:1]
	}
	return out
}

// placeholder returns one for the value.
func (g *gen) placeholder(v wire) string {
	name := fmt.Sprint(":v", len(g.values))
	g.values[name] = v
	return name
}

func (g *gen) attribute() string {
	name := pick(g, attributeNames...)
	if g.chance(15) {
		g.names["#"+name] = name
		return "#" + name
	}
	return name
}

func (g *gen) path() string {
	p := g.attribute()
	if g.indexes != nil && strings.Trim(p, "#a1b") == "" && g.chance(95) {
		return p // a path into a key is refused
	}
	for g.chance(25) {
		p += pick(g, ".x", ".y", "[0]", "[1]")
	}
	return p
}

func (g *gen) request() wireRequest {
	g.values, g.names = wire{}, map[string]string{}
	ops := []string{"PutItem", "UpdateItem", "UpdateItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan", "TransactWriteItems", "UpdateTable"}
	if g.indexes != nil {
		ops = append(ops, "PutItem", "IndexQuery", "IndexQuery", "IndexScan", "UpdateTable")
	}
	switch op := pick(g, ops...); op {
	case "TransactWriteItems":
		return g.transaction()
	case "UpdateTable":
		return g.changeOfIndexes()
	case "IndexQuery":
		return g.finish("Query", g.indexQuery())
	case "IndexScan":
		in := wire{"IndexName": pick(g, "by_one", "by_one", "by_two")}
		if g.chance(40) {
			in["FilterExpression"] = g.condition(2)
		}
		return g.finish("Scan", in)
	case "GetItem":
		in := wire{"Key": g.key(), "ConsistentRead": true, "ReturnConsumedCapacity": "TOTAL"}
		if g.chance(50) {
			in["ProjectionExpression"] = g.projection()
		}
		return g.finish(op, in)
	case "Query":
		return g.finish(op, g.query())
	case "Scan":
		in := wire{"ConsistentRead": true}
		if g.chance(70) {
			in["FilterExpression"] = g.condition(2)
		}
		return g.finish(op, in)
	default:
		in := g.write(op)
		in["ReturnConsumedCapacity"] = "TOTAL"
		in["ReturnValues"] = pick(g, "NONE", "ALL_OLD")
		if op == "UpdateItem" {
			in["ReturnValues"] = pick(g, "NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
		}
		return g.finish(op, in)
	}
}

// finish adds the placeholders that the expressions use.
func (g *gen) finish(op string, in wire) wireRequest {
	if len(g.values) > 0 {
		in["ExpressionAttributeValues"] = g.values
	}
	if len(g.names) > 0 {
		in["ExpressionAttributeNames"] = g.names
	}
	g.values, g.names = wire{}, map[string]string{}
	return wireRequest{op, in}
}

// write draws a write of one item, on its own or as an action of a transaction.
func (g *gen) write(op string) wire {
	in := wire{}
	switch op {
	case "PutItem":
		in["Item"] = g.item()
	case "UpdateItem":
		in["Key"], in["UpdateExpression"] = g.key(), g.update()
	default:
		in["Key"] = g.key()
	}
	if g.chance(60) {
		in["ConditionExpression"] = g.condition(3)
		in["ReturnValuesOnConditionCheckFailure"] = pick(g, "NONE", "ALL_OLD")
	}
	return in
}

func (g *gen) transaction() wireRequest {
	var actions []map[string]map[string]any
	for range rapid.IntRange(1, 3).Draw(g.T, "actions") {
		op := pick(g, "PutItem", "UpdateItem", "DeleteItem", "ConditionCheck")
		in := g.write(op)
		if op == "ConditionCheck" && in["ConditionExpression"] == nil {
			in["ConditionExpression"] = g.condition(2)
		}
		actions = append(actions, map[string]map[string]any{strings.TrimSuffix(op, "Item"): g.finish(op, in).in})
	}
	return wireRequest{"TransactWriteItems", wire{"TransactItems": actions, "ReturnConsumedCapacity": "TOTAL"}}
}

func (g *gen) projection() string {
	var paths []string
	for _, name := range g.some(attributeNames...) {
		if g.chance(40) {
			name += pick(g, ".x", ".y", "[0]", "[1]")
		}
		paths = append(paths, name)
	}
	return strings.Join(paths, ", ")
}

func (g *gen) query() wire {
	key := g.key()
	name, _, _ := strings.Cut(g.table[0], ":")
	condition := name + " = " + g.placeholder(key[name].(wire))
	if len(g.table) > 1 && g.chance(60) {
		sort, kind, _ := strings.Cut(g.table[1], ":")
		value := func() string { return g.placeholder(g.key()[sort].(wire)) }
		switch {
		case kind == "S" && g.chance(30):
			condition += " AND begins_with(" + sort + ", " + value() + ")"
		case g.chance(20):
			bounds := map[string][2]wire{"S": {{"S": "a"}, {"S": "b"}}, "N": {{"N": "1"}, {"N": "2"}}}[kind]
			condition += " AND " + sort + " BETWEEN " + g.placeholder(bounds[0]) + " AND " + g.placeholder(bounds[1])
		default:
			condition += " AND " + sort + " " + pick(g, "=", "<", "<=", ">", ">=") + " " + value()
		}
	}
	in := wire{"KeyConditionExpression": condition, "ConsistentRead": true, "ScanIndexForward": pick(g, true, false), "ReturnConsumedCapacity": "TOTAL"}
	if g.chance(40) {
		in["FilterExpression"] = g.condition(2)
	}
	if g.chance(30) {
		in["Limit"] = pick(g, 1, 2, 3)
	}
	return in
}
