package ddbtest

import (
	"encoding/json"
	"slices"
	"strings"
)

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
