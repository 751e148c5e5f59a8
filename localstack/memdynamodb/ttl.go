package memdynamodb

import (
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
	TimeToLiveSpecification *timeToLive
}

func (s *Server) updateTimeToLive(_ *call, in *updateTimeToLiveInput) (any, error) {
	spec := in.TimeToLiveSpecification
	if spec == nil {
		return nil, required("timeToLiveSpecification")
	}
	if err := validAttributeName(spec.AttributeName, "timeToLiveSpecification.attributeName"); err != nil {
		return nil, err
	}
	s.lock()
	defer s.mu.Unlock()
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
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
	s.lock()
	defer s.mu.Unlock()
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
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
	s.lock()
	defer s.mu.Unlock()
	now, n := s.now(), 0
	for _, t := range s.tables {
		if t.ttl == "" {
			continue
		}
		for _, p := range t.ordered() {
			for i := len(p.items) - 1; i >= 0; i-- {
				item := p.items[i]
				if k := t.keys.at(item); expired(item.Get(t.ttl), now) && !t.ongoing[k] {
					t.write(k, item, nil, ofTTL)
					n++
				}
			}
		}
	}
	return n
}

func expired(v attr.Value, now time.Time) bool {
	number, ok := v.(attr.Number)
	if !ok {
		return false
	}
	seconds, err := strconv.ParseFloat(string(number), 64)
	return err == nil && seconds < float64(now.Unix()) && seconds >= float64(now.Add(-fiveYears).Unix())
}
