package memdynamodb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// validDefinitions checks the members of definitions. AWS does not mind an empty list.
func validDefinitions(defs []attributeDefinition) error {
	if defs == nil {
		return required("attributeDefinitions")
	}
	var errs []error
	for i, d := range defs {
		member := fmt.Sprintf("attributeDefinitions.%d.member.", i+1)
		errs = append(errs, validAttributeName(d.AttributeName, member+"attributeName"))
		if !slices.Contains([]string{"B", "N", "S"}, d.AttributeType) {
			errs = append(errs, constraint(d.AttributeType, member+"attributeType", "Member must satisfy enum value set: [B, N, S]"))
		}
	}
	return constraints(errs...)
}

// attributeTypes returns the types of the defined attributes by name.
func attributeTypes(defs []attributeDefinition) (map[string]string, error) {
	if err := validDefinitions(defs); err != nil {
		return nil, err
	}
	types := map[string]string{}
	for _, d := range defs {
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

// validKeySchema checks the members of a key schema. of begins their paths in the request: that of an index, or "".
func validKeySchema(elements []keyElement, of string) error {
	member := of + "keySchema"
	if elements == nil {
		return required(member)
	}
	var errs []error
	switch n := len(elements); {
	case n == 0:
		errs = append(errs, constraint("[]", member, "Member must have length greater than or equal to 1"))
	case n > 2:
		shown := make([]string, n)
		for i, e := range elements {
			shown[i] = fmt.Sprintf("KeySchemaElement(attributeName=%s, keyType=%s)", e.AttributeName, e.KeyType)
		}
		errs = append(errs, constraint("["+strings.Join(shown, ", ")+"]", member, "Member must have length less than or equal to 2"))
	}
	for i, e := range elements {
		member := fmt.Sprintf("%s.%d.member.", member, i+1)
		errs = append(errs, validAttributeName(e.AttributeName, member+"attributeName"))
		if e.KeyType == "" {
			errs = append(errs, required(member+"keyType"))
		} else if e.KeyType != "HASH" && e.KeyType != "RANGE" {
			errs = append(errs, constraint(e.KeyType, member+"keyType", "Member must satisfy enum value set: [HASH, RANGE]"))
		}
	}
	return constraints(errs...)
}

// newSchema reads a key schema whose members are valid: a partition key and at most one sort key, whose types AttributeDefinitions gives.
func newSchema(elements []keyElement, types map[string]string) (schema, error) {
	k := schema{types: map[string]string{}}
	switch {
	case len(elements) > len(types):
		return k, validation("Invalid KeySchema: Some index key attribute have no definition")
	case elements[0].KeyType != "HASH":
		return k, validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	case len(elements) == 2 && elements[1].KeyType != "RANGE":
		return k, validation("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	case len(elements) == 2 && elements[0].AttributeName == elements[1].AttributeName:
		return k, validation("Both the Hash Key and the Range Key element in the KeySchema have the same name")
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
func allUsed(t *tableState, defs []attributeDefinition) error {
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
func (t *tableState) usedKeys() map[string]bool {
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
