package memdynamodb

import (
	"slices"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// table is a table. Each call locks the tables that it names, in the order of their names, so that it is one step on all of them: no
// reader sees half a transaction, and a condition that was true is still true when its write is made.
type table struct {
	mu      sync.Mutex // locked before the server's
	srv     *Server
	deleted bool
	at      time.Time     // of the change that is made now, set by lock
	ongoing map[key]bool  // items for which a transaction is ongoing
	late    []*lateChange // of transactions that are ongoing, in the order of their times
	tableState
}

// tableState is a table's settings and items. UpdateTable works on a copy.
type tableState struct {
	description
	created time.Time
	keys    schema
	indexes []index
	ttl     string // the TTL attribute; "": TTL is off

	recovery recovery
	stream   *stream // nil: none is enabled
	tags     []tag

	rows *rows
}

// lock locks the table and makes the changes whose time has come. Whatever looks at the table locks it first, so the changes need no
// goroutine and no timer.
func (t *table) lock() {
	t.mu.Lock()
	now := t.srv.now()
	t.applyUntil(now)
	t.at = now
}

// get returns the item, nil if there is none.
func (t *table) get(k key) attr.Map {
	if e, _ := t.rows.find(t.rows.place(k)); e != nil {
		return e.item
	}
	return nil
}

// write sets the item and tells the stream.
func (t *table) write(k key, old, new attr.Map, by *identity) {
	t.set(k, new)
	if t.stream != nil {
		t.stream.add(t.keys.of, k, old, new, by)
	}
}

// set stores the item with the key. A nil item removes the item that is there.
func (t *table) set(k key, item attr.Map) {
	var old attr.Map
	if item == nil {
		old = t.rows.remove(t.rows.place(k))
	} else {
		old = t.rows.put(item)
	}
	for i := range t.indexes {
		t.indexes[i].replace(old, item)
	}
}

// schema is the names of the key attributes of a table or index, and their types: "S", "N" or "B". sort is "" if there is
// no sort key.
type schema struct {
	partition, sort string
	types           map[string]string
}

// key is the primary key of an item: the text of the partition key, whose type is in the schema, and the sort key.
type key struct {
	partition string
	sort      attr.Value
}

// DynamoDB's limits, in bytes.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
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

// ofItem checks and returns the key of a whole item.
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

// ofKey checks and returns a key that a request gives as a map of exactly the key attributes.
func (s *schema) ofKey(k attr.Map) (key, error) {
	if len(k) != len(s.names()) || !s.fits(k) {
		return key{}, validation("The provided key element does not match the schema")
	}
	return s.valid(k)
}

// fits reports whether an item has the key attributes, each with its type.
func (s *schema) fits(item attr.Map) bool {
	return !slices.ContainsFunc(s.names(), func(name string) bool {
		v := item.Get(name)
		return v == nil || v.Type() != s.types[name]
	})
}

func (s *schema) valid(item attr.Map) (key, error) {
	k := s.at(item)
	for _, name := range s.names() {
		if err := checkEmpty(name, item.Get(name)); err != nil {
			return key{}, err
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

// emptyKey refuses an empty value of a key. It refuses a whole transaction, where other errors of an action are a reason to cancel.
type emptyKey struct{ err *awsjson.Error }

func (e *emptyKey) Error() string { return e.err.Error() }
func (e *emptyKey) Unwrap() error { return e.err }

// checkEmptyAs refuses the empty value of a key attribute, with this text.
func checkEmptyAs(format string, v attr.Value, args ...any) error {
	switch v {
	case attr.String(""):
		return &emptyKey{validation(notValid+format, append([]any{"string"}, args...)...)}
	case attr.Binary(""):
		return &emptyKey{validation(notValid+format, append([]any{"binary"}, args...)...)}
	}
	return nil
}

const (
	notValid   = "One or more parameter values are not valid. "
	emptyValue = "The AttributeValue for a key attribute cannot contain an empty %s value."
)

func checkEmpty(name string, v attr.Value) error {
	if attr.Size(v) > 0 {
		return nil // without arguments on the heap
	}
	return checkEmptyAs(emptyValue+" Key: %s", v, name)
}

// at returns the key of an item whose key is valid.
func (s *schema) at(item attr.Map) key {
	k := key{partition: keyText(item.Get(s.partition))}
	if s.sort != "" {
		k.sort = item.Get(s.sort)
	}
	return k
}

// of returns the key attributes of an item.
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
