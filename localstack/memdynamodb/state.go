package memdynamodb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// The lines of a saved server. Not saved are streams of deleted tables, and ClientRequestTokens: a transaction that is repeated with its
// token runs again.
const (
	lineServer = "dynamodb"
	lineTable  = "table"
	lineItem   = "item"
	lineStream = "stream"
	lineRecord = "record"
)

type savedServer struct{ Sequence uint64 }

type savedTable struct {
	Description   description
	Created       time.Time
	TTL           string       `json:",omitempty"`
	RecoverySince time.Time    `json:",omitzero"`
	RecoveryDays  int          `json:",omitempty"`
	Tags          []tag        `json:",omitempty"`
	Indexes       []savedIndex `json:",omitempty"`
}

type savedIndex struct {
	Name       string
	Local      bool `json:",omitempty"`
	KeySchema  []keyElement
	Projection projection
	Throughput capacityUnits
}

type savedItem struct {
	Table string
	Item  attr.Map
}

type savedStream struct {
	Table, ARN, Label, View string
	Keys                    []keyElement
	Created                 time.Time
	Disabled                time.Time `json:",omitzero"`
	Shards                  []savedShard
}

type savedShard struct {
	ID, Parent  string
	First, Last uint64
	Start, End  uint64
	Closed      time.Time `json:",omitzero"`
	Trimmed     uint64    `json:",omitempty"`
}

type savedRecord struct {
	Stream, Shard string
	Sequence      uint64
	At            time.Time
	Name          string
	Keys          attr.Map
	Old, New      *attr.Map `json:",omitempty"`
	By            *identity `json:",omitempty"`
}

// save copies the state with all tables locked, as by a transaction, and emits the copies without a lock. Items are replaced and never
// changed.
func (s *Server) save(emit func(kind string, value any) error) error {
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.tables))
	s.mu.Unlock()
	var tables []savedTable
	var items []savedItem
	var streams []savedStream
	var records []savedRecord
	locked := s.lock(slices.Values(names))
	for _, name := range slices.Sorted(maps.Keys(locked)) {
		t := locked[name]
		tables = append(tables, t.saved())
		for e := range t.rows.all() {
			items = append(items, savedItem{name, e.item})
		}
	}
	s.mu.Lock()
	for _, st := range s.streams {
		if locked[st.table] != st.of {
			continue // the table is deleted, or newer than names
		}
		saved, all := st.saved()
		streams, records = append(streams, saved), append(records, all...)
	}
	s.mu.Unlock()
	server := savedServer{s.sequence.Load()}
	locked.unlock()
	return cmp.Or(emit(lineServer, server), awsjson.EmitAll(emit, lineTable, tables), awsjson.EmitAll(emit, lineItem, items), awsjson.EmitAll(emit, lineStream, streams), awsjson.EmitAll(emit, lineRecord, records))
}

func (t *table) saved() savedTable {
	out := savedTable{
		Description: t.description, Created: t.created, TTL: t.ttl, RecoverySince: t.recovery.since, RecoveryDays: t.recovery.days,
		Tags: slices.Clone(t.tags),
	}
	for i := range t.indexes {
		ix := &t.indexes[i]
		out.Indexes = append(out.Indexes, savedIndex{ix.name, ix.local, ix.schema, ix.projection, ix.throughput})
	}
	return out
}

func (st *stream) saved() (out savedStream, records []savedRecord) {
	out = savedStream{Table: st.table, ARN: st.arn, Label: st.label, View: st.view, Keys: st.keys, Created: st.created, Disabled: st.disabled}
	for _, sh := range st.shards {
		out.Shards = append(out.Shards, savedShard{sh.id, sh.parent, sh.first, sh.last, sh.start, sh.end, sh.closed, sh.trimmed})
		for _, r := range sh.records {
			records = append(records, savedRecord{st.arn, sh.id, r.sequence, r.at, r.name, r.keys, image(r.old), image(r.new), r.by})
		}
	}
	return out, records
}

// image is an item that may be nil, which is no empty item.
func image(item attr.Map) *attr.Map {
	if item == nil {
		return nil
	}
	return &item
}

// load adds a line to the server.
func (s *Server) load(kind string, value []byte) error {
	switch kind {
	case lineServer:
		var in savedServer
		err := awsjson.Unmarshal(value, &in)
		s.sequence.Store(in.Sequence)
		return err
	case lineTable:
		return s.loadTable(value)
	case lineItem:
		return s.loadItem(value)
	case lineStream:
		return s.loadStream(value)
	case lineRecord:
		return s.loadRecord(value)
	}
	return fmt.Errorf("unknown kind %q", kind)
}

func (s *Server) loadTable(value []byte) error {
	var in savedTable
	if err := awsjson.Unmarshal(value, &in); err != nil {
		return err
	}
	name := in.Description.TableName
	if err := constraints(validName(name), validDefinitions(in.Description.AttributeDefinitions), validKeySchema(in.Description.KeySchema, "")); err != nil {
		return err
	}
	types, err := attributeTypes(in.Description.AttributeDefinitions)
	if err != nil {
		return err
	}
	t := &table{srv: s, at: s.now(), ongoing: map[key]bool{}, tableState: tableState{
		description: in.Description, created: in.Created, ttl: in.TTL, recovery: recovery{in.RecoverySince, in.RecoveryDays}, tags: in.Tags,
	}}
	if t.keys, err = newSchema(in.Description.KeySchema, types); err != nil {
		return err
	}
	t.rows = &rows{keys: t.keys}
	for _, ix := range in.Indexes {
		x := localIndexInput{IndexName: ix.Name, KeySchema: ix.KeySchema, Projection: &ix.Projection}
		if err := x.valid("index."); err != nil {
			return err
		}
		if err := t.addIndex(&x, types, ix.Local); err != nil {
			return err
		}
		t.indexes[len(t.indexes)-1].throughput = ix.Throughput
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[name] != nil {
		return fmt.Errorf("table %s is there twice", name)
	}
	s.tables[name] = t
	return nil
}

func (s *Server) loadItem(value []byte) error {
	var in savedItem
	if err := awsjson.Unmarshal(value, &in); err != nil {
		return err
	}
	t, err := s.table(in.Table)
	if err != nil {
		return fmt.Errorf("item of table %q: %w", in.Table, err)
	}
	defer t.mu.Unlock()
	k, err := t.keys.ofItem(in.Item)
	switch {
	case err != nil:
		return err
	case t.get(k) != nil:
		return fmt.Errorf("an item of table %s is there twice", in.Table)
	}
	t.set(k, in.Item)
	return nil
}

func (s *Server) loadStream(value []byte) error {
	var in savedStream
	if err := awsjson.Unmarshal(value, &in); err != nil {
		return err
	}
	t, err := s.table(in.Table)
	if err != nil {
		return fmt.Errorf("stream of table %q: %w", in.Table, err)
	}
	defer t.mu.Unlock()
	st := &stream{of: t, arn: in.ARN, label: in.Label, view: in.View, table: in.Table, keys: in.Keys, created: in.Created, disabled: in.Disabled}
	for _, sh := range in.Shards {
		st.shards = append(st.shards, &shard{
			id: sh.ID, parent: sh.Parent, first: sh.First, last: sh.Last, start: sh.Start, end: sh.End, closed: sh.Closed, trimmed: sh.Trimmed,
		})
	}
	if in.Disabled.IsZero() {
		if t.stream != nil || !st.coversAll() {
			return fmt.Errorf("table %s has two enabled streams, or one with gaps between its open shards", in.Table)
		}
		t.stream = st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, st)
	return nil
}

// coversAll reports whether the open shards have every hash once: a write looks for its shard.
func (st *stream) coversAll() bool {
	var open []*shard
	for _, sh := range st.shards {
		if sh.end == 0 {
			open = append(open, sh)
		}
	}
	slices.SortFunc(open, func(a, b *shard) int { return cmp.Compare(a.first, b.first) })
	next := uint64(0)
	for i, sh := range open {
		if sh.first != next || i > 0 && next == 0 || sh.last < sh.first {
			return false
		}
		next = sh.last + 1
	}
	return len(open) > 0 && next == 0
}

func (s *Server) loadRecord(value []byte) error {
	var in savedRecord
	if err := awsjson.Unmarshal(value, &in); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := slices.IndexFunc(s.streams, func(st *stream) bool { return st.arn == in.Stream })
	if st < 0 {
		return fmt.Errorf("record %d: there is no stream %q", in.Sequence, in.Stream)
	}
	shards := s.streams[st].shards
	sh := slices.IndexFunc(shards, func(sh *shard) bool { return sh.id == in.Shard })
	if sh < 0 {
		return fmt.Errorf("record %d: stream %s has no shard %q", in.Sequence, in.Stream, in.Shard)
	}
	if last := len(shards[sh].records) - 1; last >= 0 && shards[sh].records[last].sequence >= in.Sequence {
		return fmt.Errorf("record %d of shard %s is not in its order", in.Sequence, in.Shard)
	}
	r := streamRecord{sequence: in.Sequence, at: in.At, name: in.Name, keys: in.Keys, by: in.By}
	if in.Old != nil {
		r.old = *in.Old
	}
	if in.New != nil {
		r.new = *in.New
	}
	shards[sh].records = append(shards[sh].records, r)
	return nil
}
