package memdynamodb

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

type timeToLive struct {
	AttributeName string
	Enabled       bool
}

type updateTimeToLiveInput struct {
	TableName               string
	TimeToLiveSpecification *struct {
		AttributeName *string
		Enabled       *bool
	}
}

func (in *updateTimeToLiveInput) spec() (timeToLive, error) {
	spec := in.TimeToLiveSpecification
	if spec == nil {
		return timeToLive{}, required("timeToLiveSpecification")
	}
	const name, enabled = "timeToLiveSpecification.attributeName", "timeToLiveSpecification.enabled"
	var errName, errEnabled error
	if spec.AttributeName == nil {
		errName = required(name)
	} else {
		errName = validAttributeName(*spec.AttributeName, name)
	}
	if spec.Enabled == nil {
		errEnabled = required(enabled)
	}
	if err := constraints(errName, errEnabled); err != nil {
		return timeToLive{}, err
	}
	return timeToLive{*spec.AttributeName, *spec.Enabled}, nil
}

func (s *Server) updateTimeToLive(_ *call, in *updateTimeToLiveInput) (any, error) {
	spec, err := in.spec()
	if err != nil {
		return nil, err
	}
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	switch {
	case spec.Enabled && t.ttl == spec.AttributeName:
		return nil, validation("TimeToLive is already enabled")
	case !spec.Enabled && t.ttl == "":
		return nil, validation("TimeToLive is already disabled")
	case t.ttl != "" && t.ttl != spec.AttributeName:
		return nil, validation("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	}
	t.ttl = ""
	if spec.Enabled {
		t.ttl = spec.AttributeName
	}
	return map[string]any{"TimeToLiveSpecification": spec}, nil
}

type timeToLiveDescription struct {
	TimeToLiveStatus string
	AttributeName    string `json:",omitempty"`
}

func (s *Server) describeTimeToLive(_ *call, in *tableInput) (any, error) {
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	d := timeToLiveDescription{"DISABLED", ""}
	if t.ttl != "" {
		d = timeToLiveDescription{"ENABLED", t.ttl}
	}
	return map[string]any{"TimeToLiveDescription": d}, nil
}

// fiveYears is the age beyond which TTL does not delete an item.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
const fiveYears = 5 * 365 * 24 * time.Hour

// SweepTTL deletes the expired items of every table with TTL enabled and returns their count. DynamoDB does so at some time
// within a few days. An item is expired when its TTL attribute is a number, in seconds since 1970, that is in the past, by at
// most five years.
func (s *Server) SweepTTL() int {
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.tables))
	s.mu.Unlock()
	n := 0
	for _, name := range names {
		if t, err := s.table(name); err == nil {
			n += t.sweep()
			t.mu.Unlock()
		}
	}
	return n
}

// sweep deletes the expired items.
func (t *table) sweep() int {
	if t.ttl == "" {
		return 0
	}
	var old []attr.Map
	for e := range t.rows.all() {
		if expired(e.item.Get(t.ttl), t.at) && !t.ongoing[t.keys.at(e.item)] {
			old = append(old, e.item)
		}
	}
	for _, item := range old {
		t.write(t.keys.at(item), item, nil, ofTTL)
	}
	return len(old)
}

func expired(v attr.Value, now time.Time) bool {
	number, ok := v.(attr.Number)
	if !ok {
		return false
	}
	seconds, err := strconv.ParseFloat(string(number), 64)
	return err == nil && seconds < float64(now.Unix()) && seconds >= float64(now.Add(-fiveYears).Unix())
}
