package storetest

import (
	"context"
	"crypto/rand"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
)

func (s *switchable) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if err := s.answer("Inspect"); err != nil {
		return dedup.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[key]
	if r == nil {
		return dedup.Record{}, dedup.ErrNotFound
	}
	if r.foreign && !s.has("inspects what is no record") {
		return dedup.Record{Lease: dedup.Lease{Key: key}}, dedup.ErrRecord
	}
	rec := dedup.Record{Lease: r.Lease, Completed: r.done, Result: r.result, ExpiresAt: r.expires, Note: r.note}
	rec.LastError = r.err
	if r.released {
		rec.Until = time.Time{}
	}
	return rec, ctx.Err()
}

func (s *switchable) Reopen(ctx context.Context, seen dedup.Record, note string, optFns ...func(*dedup.ReopenOptions)) error {
	if ctx.Err() != nil && !s.has("reopens for a cancelled caller") {
		return ctx.Err()
	}
	if err := s.answer("Reopen"); err != nil {
		return err
	}
	o := dedup.ReopenOptions{Retention: 29 * 24 * time.Hour}
	for _, fn := range optFns {
		if fn(&o); o.Retention == 0 {
			o.Retention = 29 * 24 * time.Hour
		}
	}
	for field, bad := range map[string]bool{
		"seen.Key": seen.Key == "", "seen.Owner": seen.Owner == "",
		"ReopenOptions.Name": strings.Contains(o.Name, "\n"), "ReopenOptions.Retention": o.Retention < time.Hour,
	} {
		if bad && !s.has("takes any "+field) {
			return &sqsonce.OptionError{Package: "storetest", Field: field, Problem: "is bad"}
		}
	}
	same := false
	if s.has("looks before it locks, at Reopen") {
		s.mu.Lock()
		same = s.rows[seen.Key] != nil && s.rows[seen.Key].Owner == seen.Owner
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.rows[seen.Key], time.Now()
	if same {
		seen.Owner, seen.Fence, seen.Completed = r.Owner, r.Fence, r.done
	}
	if r == nil && s.has("creates a record that it reopens") {
		r = &row{Lease: seen.Lease}
		s.rows[seen.Key] = r
	}
	switch {
	case r == nil, r.Owner != seen.Owner && !s.has("reopens any owner's record"), r.Fence != seen.Fence && !s.has("reopens any fence"),
		r.done != seen.Completed && !s.has("reopens in any status"):
		return dedup.ErrChanged
	case !r.done && !r.released && now.Before(r.Until) && (!o.Force || s.has("ignores Force")) && !s.has("reopens live leases"):
		if s.has("does not say until when, at Reopen") {
			return &dedup.InProgressError{}
		}
		return &dedup.InProgressError{Until: r.Until}
	}
	if !s.has("leaves the owner of a reopened record") {
		r.Owner = host.OperatorPrefix + o.Name + "/" + rand.Text()
	}
	if s.has("has one owner for every reopen") {
		r.Owner = host.OperatorPrefix + o.Name + "/"
	}
	if !s.has("leaves the fence of a reopened record") {
		r.Fence = max(r.Fence+1, now.UnixMilli())
	}
	if !s.has("leaves the result of a reopened record") {
		r.result = dedup.Result{}
	}
	r.done, r.released = false, !s.has("leaves a reopened record leased")
	s.note(r, note)
	if seen.Crashes(time.Time{}) > 0 && !s.has("keeps the count of crashes at a reopen") {
		r.err = ""
	}
	expires := now.Add(o.Retention)
	if expires.After(r.expires) && !s.has("does not move retention with a reopen") || s.has("shortens retention with a reopen") {
		r.expires = expires
	}
	return nil
}

func (s *switchable) Keep(ctx context.Context, seen dedup.Record, operator string, data []byte, d time.Duration) (dedup.Record, error) {
	if ctx.Err() != nil && !s.has("keeps for a cancelled caller") {
		return dedup.Record{}, ctx.Err()
	}
	if err := s.answer("Keep"); err != nil {
		return dedup.Record{}, err
	}
	for field, bad := range map[string]bool{
		"seen.Key": seen.Key == "", "operator": len(operator) > 128 || strings.Contains(operator, "\n") || !utf8.ValidString(operator), "data": len(data) > 4000, "d": d < time.Second,
	} {
		if bad && !s.has("keeps with any "+field) {
			return dedup.Record{}, &sqsonce.OptionError{Package: "storetest", Field: field, Problem: "is bad"}
		}
	}
	if s.has("keeps texts of 2,000 bytes") {
		data = data[:min(len(data), 2000)]
	}
	looked := false
	if s.has("looks before it locks, at Keep") {
		s.mu.Lock()
		r := s.rows[seen.Key]
		looked = r == nil && seen.Owner == "" || r != nil && r.Owner == seen.Owner
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.rows[seen.Key], time.Now()
	if r != nil && r.foreign && !s.has("keeps a text over what is no record") {
		return dedup.Record{}, dedup.ErrRecord
	}
	over := r != nil && r.done && now.After(r.expires) && !s.has("waits for the deletion of a kept text")
	switch {
	case over && seen.Owner != "" && s.has("refuses a text whose time has passed"):
		return dedup.Record{}, dedup.ErrChanged
	case looked || s.has("keeps over any record"):
	case seen.Owner == "" && (r == nil || over || r.done && s.has("keeps where a record is")):
	case r == nil && s.has("creates a record that it has seen"):
		r = &row{Lease: seen.Lease, done: true}
	case r == nil, !r.done && !s.has("keeps over a record in progress"), r.Owner != seen.Owner && (seen.Owner == "" || !s.has("keeps over any owner's record")),
		r.Fence != seen.Fence && !s.has("keeps over any fence"):
		return dedup.Record{}, dedup.ErrChanged
	}
	kept := &row{Lease: dedup.Lease{Key: seen.Key, Owner: host.OperatorPrefix + operator + "/" + rand.Text()}, done: true, result: dedup.Result{Data: data}}
	if s.has("has one owner for every text") {
		kept.Owner = host.OperatorPrefix + operator + "/"
	}
	if kept.Fence = max(seen.Fence+1, now.UnixMilli()); s.has("leaves the fence of a kept text") {
		kept.Fence = seen.Fence
	}
	if kept.expires = now.Add(d); r != nil && !over && s.has("never shortens a kept text") && r.expires.After(kept.expires) {
		kept.expires = r.expires
	}
	if r != nil && s.has("leaves the note of what it replaces") {
		kept.note, kept.err, kept.result.Validation = r.note, r.err, r.result.Validation
	}
	s.rows[seen.Key] = kept
	rec := dedup.Record{Lease: kept.Lease, Completed: true, Result: kept.result, ExpiresAt: kept.expires, Note: kept.note}
	if s.has("returns what was seen") {
		rec = seen
	}
	return rec, nil
}

func (s *switchable) note(r *row, note string) {
	if !s.has("keeps a NUL of a note") {
		note = strings.ReplaceAll(note, "\x00", "")
	}
	switch whole := strings.ToValidUTF8(note[:min(len(note), 256)], ""); {
	case s.has("drops the note"), note == "" && s.has("keeps an earlier note for want of one"):
	case s.has("stores the note as the last error"):
		r.note, r.err = whole, whole
	case s.has("keeps a note of any length"):
		r.note = note
	case s.has("cuts notes inside characters"):
		r.note = note[:min(len(note), 256)]
	default:
		r.note = whole
	}
}

func (s *switchable) List(ctx context.Context, optFns ...func(*dedup.ListOptions)) iter.Seq2[dedup.Record, error] {
	return func(yield func(dedup.Record, error) bool) {
		if err := s.answer("List"); err != nil || ctx.Err() != nil && !s.has("lists for a cancelled caller") {
			yield(dedup.Record{}, or(err, ctx.Err()))
			return
		}
		var o dedup.ListOptions
		for _, fn := range optFns {
			fn(&o)
		}
		if s.has("lists a record that is not there") && !yield(dedup.Record{}, nil) {
			return
		}
		n := 0
		for _, key := range slices.Sorted(maps.Keys(s.rows)) {
			if key <= o.After && !s.has("ignores After") && (key < o.After || !s.has("begins with After")) {
				continue
			}
			r, err := s.Inspect(context.Background(), key)
			if err != nil {
				if !yield(r, err) || s.has("ends a list at what is no record") {
					return
				}
				continue
			}
			if s.has("lists without the errors") {
				r.LastError = ""
			}
			listed := (!question.IsKey(key) || s.has("lists questions")) && s.matches(o.Consumer, key) && (len(o.States) == 0 || s.has("ignores States") || slices.Contains(o.States, r.State(time.Now())))
			if listed && !s.has("lists nothing") && !yield(r, nil) {
				return
			}
			if listed || s.has("counts what it does not list") {
				n++
			}
			if n == o.Limit && !s.has("ignores Limit") && o.Limit != 0 || o.Limit < 0 && s.has("ends at once at a negative Limit") {
				return
			}
		}
	}
}

func (s *switchable) matches(consumer, key string) bool {
	name, _, _ := strings.Cut(key, "#")
	switch {
	case consumer == "" && s.has("lists one consumer only"):
		return name == "bill"
	case consumer == "":
		return true
	case s.has("takes a consumer for a pattern"):
		ok, _ := path.Match(consumer, name)
		return ok
	case s.has("lists consumers whose names begin so"):
		return strings.HasPrefix(name, consumer)
	}
	return name == consumer
}

func or(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
