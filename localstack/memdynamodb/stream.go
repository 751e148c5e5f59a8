package memdynamodb

import (
	"fmt"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// kept is how long a stream keeps a record.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
const kept = 24 * time.Hour

// stream is the changes of a table's items, for as long as they are kept. The shards are the table's to lock.
type stream struct {
	of               *table // which may be deleted
	arn, label, view string
	table            string
	keys             []keyElement
	created          time.Time
	disabled         time.Time // zero: it is enabled; set under the server's mu too
	shards           []*shard  // in the order of their creation
}

// shard is the changes of the items whose hash is in a range, while the shard was open.
type shard struct {
	id, parent  string
	first, last uint64 // hashes of partition keys
	start, end  uint64 // sequence numbers; end is 0 while the shard is open
	closed      time.Time
	trimmed     uint64 // of the newest record that is gone
	records     []streamRecord
}

// streamRecord is one change of one item. An image that the view type does not have is nil.
type streamRecord struct {
	sequence       uint64
	at             time.Time
	name           string // INSERT, MODIFY or REMOVE
	keys, old, new attr.Map
	by             *identity
}

// identity is who made a change. It is nil for the table's users.
type identity struct {
	PrincipalID string `json:"PrincipalId"`
	Type        string
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
var ofTTL = &identity{"dynamodb.amazonaws.com", "Service"}

// open adds a shard.
func (st *stream) open(parent string, first, last uint64) {
	sh := &shard{parent: parent, first: first, last: last, start: st.of.srv.sequence.Add(1)}
	sh.id = fmt.Sprintf("shardId-%020d-%08x", st.of.at.UnixMilli(), uint32(sh.start)) // AWS sorts them by age too
	st.shards = append(st.shards, sh)
}

// close ends a shard.
func (st *stream) close(sh *shard) {
	if sh.end == 0 {
		sh.end, sh.closed = st.of.srv.sequence.Add(1), st.of.at
	}
}

// add records a change. One that changes nothing leaves no record.
func (st *stream) add(keysOf func(attr.Map) attr.Map, k key, old, new attr.Map, by *identity) {
	r := streamRecord{at: st.of.at, name: "MODIFY", by: by}
	switch {
	case old == nil && new == nil, old != nil && new != nil && attr.Equal(old, new):
		return
	case old == nil:
		r.name, r.keys = "INSERT", keysOf(new)
	case new == nil:
		r.name, r.keys = "REMOVE", keysOf(old)
	default:
		r.keys = keysOf(new)
	}
	if st.view == "OLD_IMAGE" || st.view == "NEW_AND_OLD_IMAGES" {
		r.old = old
	}
	if st.view == "NEW_IMAGE" || st.view == "NEW_AND_OLD_IMAGES" {
		r.new = new
	}
	r.sequence = st.of.srv.sequence.Add(1)
	hash := spread(hashOf(k.partition))
	at := slices.IndexFunc(st.shards, func(sh *shard) bool { return sh.end == 0 && sh.first <= hash && hash <= sh.last })
	sh := st.shards[at] // the open shards have all hashes between them
	sh.trim(st.of.at)
	sh.records = append(sh.records, r)
}

// spread makes a hash whose high bits differ for keys that differ in one character: the ranges of shards need that.
func spread(hash uint64) uint64 { return (hash ^ hash>>32) * 0x9e3779b97f4a7c15 }

// size is what AWS calls SizeBytes.
func (r *streamRecord) size() int { return r.keys.Size() + r.old.Size() + r.new.Size() }

// trim deletes the records that are too old.
func (sh *shard) trim(now time.Time) {
	n := 0
	for ; n < len(sh.records) && now.Sub(sh.records[n].at) >= kept; n++ {
		sh.trimmed = sh.records[n].sequence
	}
	clear(sh.records[:n])
	sh.records = sh.records[n:]
}

// gone reports whether what was closed or disabled at a time is too old to be kept. The zero time is not.
func gone(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= kept }

// trim deletes what is too old: records and closed shards. The caller holds the table's mu.
func (st *stream) trim() {
	for _, sh := range st.shards {
		sh.trim(st.of.at)
	}
	st.shards = slices.DeleteFunc(st.shards, func(sh *shard) bool { return gone(sh.closed, st.of.at) })
}

// trimStreams deletes the disabled streams that are too old. The caller holds mu.
func (s *Server) trimStreams(now time.Time) {
	s.streams = slices.DeleteFunc(s.streams, func(st *stream) bool { return gone(st.disabled, now) })
}

// ReplaceShards closes the open shards of the table's stream and opens children of each, 1 to 16, which divide the items of the
// parent. AWS replaces a shard by one every few hours, and by two when it divides a partition. ReplaceShards returns an error if
// the table does not have an enabled stream, or if children is out of range.
func (s *Server) ReplaceShards(tableName string, children int) error {
	t, err := s.table(tableName)
	if err == nil {
		defer t.mu.Unlock()
	}
	switch {
	case err != nil || t.stream == nil:
		return fmt.Errorf("memdynamodb: table %q has no stream", tableName)
	case children < 1 || children > 16:
		return fmt.Errorf("memdynamodb: %d children of a shard, want 1 to 16", children)
	}
	for _, parent := range slices.Clone(t.stream.shards) {
		if parent.end != 0 {
			continue
		}
		t.stream.close(parent)
		step := (parent.last-parent.first)/uint64(children) + 1 // 0 after an overflow: one child of all hashes
		for i := range children {
			first, last := parent.first+uint64(i)*step, parent.first+uint64(i+1)*step-1
			if i == children-1 {
				last = parent.last
			}
			t.stream.open(parent.id, first, last)
		}
	}
	t.stream.trim()
	return nil
}
