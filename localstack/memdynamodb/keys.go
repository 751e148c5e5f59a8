package memdynamodb

import (
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// schema names the key attributes of a table or index and their types ("S", "N" or "B"); sort is "" if there is none.
type schema struct {
	partition, sort string
	types           map[string]string
}

// key is where an item is: the partition key's text (its type is the schema's) and the sort key.
type key struct {
	partition string
	sort      attr.Value
}

const (
	maxPartitionKey = 2048
	maxSortKey      = 1024
	maxItem         = 400 << 10
)

func (s *schema) names() []string {
	if s.sort == "" {
		return []string{s.partition}
	}
	return []string{s.partition, s.sort}
}

// ofItem returns the key of a whole item.
func (s *schema) ofItem(item attr.Map) (key, error) {
	for _, name := range s.names() {
		v := item.Get(name)
		if v == nil {
			return key{}, validation(invalidParameters+"Missing the key %s in the item", name)
		}
		if v.Type() != s.types[name] {
			return key{}, validation(invalidParameters+"Type mismatch for key %s expected: %s actual: %s", name, s.types[name], v.Type())
		}
	}
	return s.valid(item)
}

// ofKey returns the key that a request names by exactly the key attributes.
func (s *schema) ofKey(k attr.Map) (key, error) {
	names := s.names()
	if len(k) != len(names) {
		return key{}, validation("The provided key element does not match the schema")
	}
	for _, name := range names {
		if v := k.Get(name); v == nil || v.Type() != s.types[name] {
			return key{}, validation("The provided key element does not match the schema")
		}
	}
	return s.valid(k)
}

func (s *schema) valid(item attr.Map) (key, error) {
	k := s.at(item)
	for _, name := range s.names() {
		switch item.Get(name) {
		case attr.String(""):
			return key{}, validation("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", name)
		case attr.Binary(""):
			return key{}, validation("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty binary value. Key: %s", name)
		}
	}
	if attr.Size(item.Get(s.partition)) > maxPartitionKey {
		return key{}, validation(invalidParameters+"Size of hashkey has exceeded the maximum size limit of%d bytes", maxPartitionKey)
	}
	if k.sort != nil && attr.Size(k.sort) > maxSortKey {
		return key{}, validation(invalidParameters+"Aggregated size of all range keys has exceeded the size limit of %d bytes", maxSortKey)
	}
	return k, nil
}

// at returns the key of an item that has a valid one.
func (s *schema) at(item attr.Map) key {
	k := key{partition: keyText(item.Get(s.partition))}
	if s.sort != "" {
		k.sort = item.Get(s.sort)
	}
	return k
}

// of returns the key attributes of an item alone.
func (s *schema) of(item attr.Map) attr.Map {
	var m attr.Map
	for _, name := range s.names() {
		if v := item.Get(name); v != nil {
			m = m.With(name, v)
		}
	}
	return m
}

func keyText(v attr.Value) string {
	switch v := v.(type) {
	case attr.String:
		return string(v)
	case attr.Number:
		return string(v)
	case attr.Binary:
		return string(v)
	}
	return ""
}
