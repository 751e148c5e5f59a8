package ddbtest

import "strings"

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

// indexQuery draws a query of an index. Neither its order nor its costs are compared: items with one key have no order there.
func (g *gen) indexQuery() wire {
	name := pick(g, "by_one", "by_one", "by_none")
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
