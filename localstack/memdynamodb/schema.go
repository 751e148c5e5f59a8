package memdynamodb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// attributeTypes returns the types of the defined attributes by name.
func attributeTypes(defs []attributeDefinition) (map[string]string, error) {
	if len(defs) == 0 {
		return nil, required("attributeDefinitions")
	}
	types := map[string]string{}
	for i, d := range defs {
		member := fmt.Sprintf("attributeDefinitions.%d.member.", i+1)
		if !slices.Contains([]string{"B", "N", "S"}, d.AttributeType) {
			return nil, constraint(d.AttributeType, member+"attributeType", "Member must satisfy enum value set: [B, N, S]")
		}
		if err := validAttributeName(d.AttributeName, member+"attributeName"); err != nil {
			return nil, err
		}
		if types[d.AttributeName] != "" {
			return nil, validation("Attribute Name is duplicated: %s", d.AttributeName)
		}
		types[d.AttributeName] = d.AttributeType
	}
	return types, nil
}

// maxSpecialName is the limit of the names of key, projected and TTL attributes, in bytes.
const maxSpecialName = 255

func validAttributeName(name, member string) error {
	switch {
	case name == "":
		return constraint(name, member, "Member must have length greater than or equal to 1")
	case len(name) > maxSpecialName:
		return constraint(name, member, "Member must have length less than or equal to 255")
	}
	return nil
}

// newSchema reads a key schema: a partition key and at most one sort key, whose types AttributeDefinitions gives.
func newSchema(elements []keyElement, types map[string]string) (schema, error) {
	k := schema{types: map[string]string{}}
	switch {
	case len(elements) == 0:
		return k, required("keySchema")
	case len(elements) > 2:
		return k, constraint(elements, "keySchema", "Member must have length less than or equal to 2")
	case elements[0].KeyType != "HASH":
		return k, validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	case len(elements) == 2 && elements[1].KeyType != "RANGE":
		return k, validation("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	case len(elements) == 2 && elements[0].AttributeName == elements[1].AttributeName:
		return k, validation("Both the Hash Key and the Range Key element in the KeySchema have the same name")
	}
	for i, e := range elements {
		if err := validAttributeName(e.AttributeName, fmt.Sprintf("keySchema.%d.member.attributeName", i+1)); err != nil {
			return k, err
		}
	}
	k.partition = elements[0].AttributeName
	if len(elements) == 2 {
		k.sort = elements[1].AttributeName
	}
	for _, name := range k.names() {
		if types[name] == "" {
			return k, validation(invalidParameters+"Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]", strings.Join(k.names(), ", "), strings.Join(slices.Sorted(maps.Keys(types)), ", "))
		}
		k.types[name] = types[name]
	}
	return k, nil
}

// allUsed refuses the definition of an attribute that is not a key of the table or of an index.
func allUsed(t *table, defs []attributeDefinition) error {
	used := t.usedKeys()
	switch {
	case len(used) == len(defs):
		return nil
	case len(t.indexes) == 0:
		return validation(invalidParameters + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	names := make([]string, len(defs))
	for i, d := range defs {
		names[i] = d.AttributeName
	}
	return validation(invalidParameters+"Some AttributeDefinitions are not used. AttributeDefinitions: [%s], keys used: [%s]", strings.Join(names, ", "), strings.Join(slices.Sorted(maps.Keys(used)), ", "))
}

// usedKeys are the key attributes of the table and its indexes.
func (t *table) usedKeys() map[string]bool {
	used := map[string]bool{}
	for _, name := range t.keys.names() {
		used[name] = true
	}
	for i := range t.indexes {
		for _, name := range t.indexes[i].keys.names() {
			used[name] = true
		}
	}
	return used
}
