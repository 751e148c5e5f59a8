package ddbtest

import (
	"encoding/json"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

func (g *gen) operand() string { return g.operandOf(g.value) }

// ordered draws an operand of a type that has an order, and now and then one of another type.
func (g *gen) ordered() string {
	if g.chance(3) {
		return g.operand()
	}
	return g.operandOf(g.scalar)
}

func (g *gen) operandOf(value func(depth int) wire) string {
	switch {
	case g.chance(45):
		return g.placeholder(value(1))
	case g.chance(15):
		return "size(" + g.path() + ")"
	default:
		return g.path()
	}
}

func (g *gen) condition(depth int) string {
	if depth > 0 && g.chance(45) {
		left, right := g.condition(depth-1), g.condition(depth-1)
		switch pick(g, "AND", "OR", "NOT", "()") {
		case "AND":
			return left + " AND " + right
		case "OR":
			return left + " OR " + right
		case "NOT":
			return "NOT " + left + " AND " + right
		default:
			return "(" + left + " OR " + right + ") AND NOT (" + g.condition(0) + ")"
		}
	}
	switch pick(g, "compare", "compare", "compare", "between", "in", "exists", "type", "begins", "contains") {
	case "between":
		if g.chance(10) {
			return g.ordered() + " BETWEEN " + g.ordered() + " AND " + g.ordered()
		}
		bounds := pick(g, [2]wire{{"N": "0.5"}, {"N": "2"}}, [2]wire{{"S": ""}, {"S": "ab"}}, [2]wire{{"B": "YQ=="}, {"B": "YWI="}}, [2]wire{{"N": "1"}, {"N": "1.0"}})
		return g.ordered() + " BETWEEN " + g.placeholder(bounds[0]) + " AND " + g.placeholder(bounds[1])
	case "in":
		var list []string
		for range rapid.IntRange(1, 3).Draw(g.T, "operands") {
			list = append(list, g.operand())
		}
		return g.operand() + " IN (" + strings.Join(list, ", ") + ")"
	case "exists":
		return pick(g, "attribute_exists", "attribute_not_exists") + "(" + g.path() + ")"
	case "type":
		return "attribute_type(" + g.path() + ", " + g.placeholder(wire{"S": pick(g, "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M")}) + ")"
	case "begins":
		return "begins_with(" + g.path() + ", " + g.placeholder(wire{"S": pick(g, "a", "", "ab")}) + ")"
	case "contains":
		return "contains(" + g.path() + ", " + g.operand() + ")"
	default:
		if g.chance(50) {
			return g.operand() + pick(g, " = ", " <> ") + g.operand()
		}
		return g.ordered() + pick(g, " < ", " <= ", " > ", " >= ") + g.ordered()
	}
}

// update draws a list of clauses. Each attribute is in one of them.
func (g *gen) update() string {
	clauses := map[string][]string{}
	for _, name := range g.some(attributeNames...) {
		path := name
		if g.chance(35) {
			path += pick(g, ".x", ".y", "[0]", "[1]", "[7]")
		}
		switch clause := pick(g, "SET", "SET", "SET", "REMOVE", "ADD", "DELETE"); clause {
		case "SET":
			clauses[clause] = append(clauses[clause], path+" = "+g.setValue())
		case "REMOVE":
			clauses[clause] = append(clauses[clause], path)
		case "ADD":
			v := wire{"N": g.number()}
			if g.chance(40) {
				v = g.set()
			}
			clauses[clause] = append(clauses[clause], path+" "+g.placeholder(v))
		case "DELETE":
			clauses[clause] = append(clauses[clause], path+" "+g.placeholder(g.set()))
		}
	}
	var all []string
	for _, clause := range []string{"REMOVE", "SET", "DELETE", "ADD"} {
		if len(clauses[clause]) > 0 {
			all = append(all, clause+" "+strings.Join(clauses[clause], ", "))
		}
	}
	return strings.Join(all, " ")
}

func (g *gen) set() wire {
	return pick(g, wire{"SS": g.some("a", "b", "c")}, wire{"NS": g.some("1", "2", "3")}, wire{"BS": g.some("YQ==", "YWI=")})
}

func (g *gen) setOperand() string {
	switch {
	case g.chance(50):
		return g.placeholder(g.value(1))
	case g.chance(30):
		return "if_not_exists(" + g.path() + ", " + g.placeholder(g.value(1)) + ")"
	default:
		return g.path()
	}
}

func (g *gen) setValue() string {
	number := func() string {
		if g.chance(50) {
			return g.placeholder(wire{"N": g.number()})
		}
		return g.path()
	}
	list := func() string {
		if g.chance(50) {
			return g.placeholder(wire{"L": []any{g.value(0)}})
		}
		return g.path()
	}
	switch pick(g, "value", "value", "sum", "append") {
	case "sum":
		return number() + " " + pick(g, "+", "-") + " " + number()
	case "append":
		return "list_append(" + list() + ", " + list() + ")"
	default:
		return g.setOperand()
	}
}

// keySchema returns KeySchema and AttributeDefinitions of keys written "id:S".
func keySchema(keys []string) (elements, definitions []map[string]string) {
	for i, k := range keys {
		name, kind, _ := strings.Cut(k, ":")
		elements = append(elements, map[string]string{"AttributeName": name, "KeyType": []string{"HASH", "RANGE"}[i]})
		definitions = append(definitions, map[string]string{"AttributeName": name, "AttributeType": kind})
	}
	return elements, definitions
}

// index draws an index. An attribute has one type as the key of every index: dynoxide takes several.
func (g *gen) index(name string) wire {
	keys := pick(g, []string{"a1:S"}, []string{"a1:S", "b1:N"}, []string{"b1:N"}, []string{"b1:N", "a1:S"})
	if g.indexes == nil {
		g.indexes = map[string][]string{}
	}
	g.indexes[name] = keys
	elements, _ := keySchema(keys)
	projection := pick(g, wire{"ProjectionType": "ALL"}, wire{"ProjectionType": "KEYS_ONLY"}, wire{"ProjectionType": "INCLUDE", "NonKeyAttributes": []string{"c1"}})
	return wire{"IndexName": name, "KeySchema": elements, "Projection": projection}
}

func (g *gen) changeOfIndexes() wireRequest {
	name := pick(g, "by_one", "by_two", "by_two")
	if g.chance(40) {
		delete(g.indexes, name)
		return wireRequest{"UpdateTable", wire{"GlobalSecondaryIndexUpdates": []wire{{"Delete": wire{"IndexName": name}}}}}
	}
	before := g.indexes[name]
	ix := g.index(name)
	_, definitions := keySchema(g.indexes[name])
	if before != nil {
		g.indexes[name] = before // it is there, and the request is refused
	}
	return wireRequest{"UpdateTable", wire{"AttributeDefinitions": definitions, "GlobalSecondaryIndexUpdates": []wire{{"Create": ix}}}}
}

// indexQuery draws a query of an index. Neither its order nor its costs are compared: items with one key have no order there.
func (g *gen) indexQuery() wire {
	name := pick(g, "by_one", "by_one", "by_two")
	keys := g.indexes[name]
	if keys == nil {
		keys = []string{"a1:S"}
	}
	values := map[string][]wire{"S": {{"S": "a"}, {"S": "b"}}, "N": {{"N": "1"}, {"N": "2"}, {"N": "10"}}}
	value := func(kind string) string { return g.placeholder(pick(g, values[kind]...)) }
	key, kind, _ := strings.Cut(keys[0], ":")
	condition := key + " = " + value(kind)
	if len(keys) > 1 && g.chance(60) {
		sort, kind, _ := strings.Cut(keys[1], ":")
		condition += " AND " + sort + " " + pick(g, "=", "<", "<=", ">", ">=") + " " + value(kind)
	}
	return wire{"IndexName": name, "KeyConditionExpression": condition}
}

// misfits reports whether an item of a scan has an attribute that cannot be the key of an index.
func misfits(scanned string) bool {
	var scan struct{ Items []map[string]map[string]any }
	_ = json.Unmarshal([]byte(scanned), &scan) // what readResult wrote
	return slices.ContainsFunc(scan.Items, func(i map[string]map[string]any) bool {
		a, b := i["a1"], i["b1"]
		return a != nil && (a["S"] == nil || a["S"] == "") || b != nil && b["N"] == nil
	})
}
