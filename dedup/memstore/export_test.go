package memstore

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/sqsonce/sqsonce/limit"
)

// Len is the number of records in memory, including those whose retention is over.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

// notStored are fields of a record that say the same as another one, or are the claim's alone.
var notStored = map[string]bool{
	"lease.Retention": true, "lease.Takeover": true, "lease.TakenFrom": true, "lease.TakenOwner": true, "lease.OwnRetry": true, "lease.LastError": true,
}

// attributeNames are DynamoDB's, where they differ from the fields'.
var attributeNames = map[string]string{
	"lease.Key": "id", "lease.Until": "in_progress_expiration", "lease.ReceiveCount": "receive_count", "lastError": "error", "expires": "expiration",
}

// Attributes are the fields of the key's record that are not zero. It finds new fields by itself.
func (s *Store) Attributes(key string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[key]
	if r == nil {
		return nil
	}
	got := map[string]string{"status": fmt.Sprint(r.completed), "in_progress_expiration": fmt.Sprint(r.released), "receive_count": "0"}
	var add func(path string, v reflect.Value)
	add = func(path string, v reflect.Value) {
		for i := range v.NumField() {
			name := path + v.Type().Field(i).Name
			switch {
			case name == "lease" || name == "result":
				add(name+".", v.Field(i))
			case name == "released" || name == "completed" || notStored[name] || v.Field(i).IsZero():
			default:
				got[cmp.Or(attributeNames[name], strings.ToLower(v.Type().Field(i).Name))] = fmt.Sprint(v.Field(i))
			}
		}
	}
	add("", reflect.ValueOf(*r))
	return got
}

// CounterStore is the counter's store.
func CounterStore(c limit.Counter) *Store { return c.(*keyCounter).store }
