package memdynamodb

import (
	"cmp"
	"math"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

type scanInput struct {
	pageInput
	Segment, TotalSegments *int
}

const maxSegments = 1_000_000

func (s *Server) scan(c *call, in *scanInput) (any, error) {
	segment, of, err := in.segment()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	src, err := s.open(&in.pageInput, nil)
	if err != nil {
		return nil, err
	}
	// An index is scanned in the order of the table: DynamoDB promises none.
	width := uint64(math.MaxUint64)/uint64(of) + 1
	if of == 1 {
		width = math.MaxUint64
	}
	start := in.ExclusiveStartKey
	var from key
	if start != nil {
		from = src.table.keys.at(start)
	}
	var candidates []attr.Map
	size, beyond := 0, false
	for _, p := range src.table.ordered() {
		if of > 1 && p.hash/width != uint64(segment) {
			continue
		}
		if start != nil && cmp.Or(cmp.Compare(p.hash, hashOf(from.partition)), cmp.Compare(p.key, from.partition)) < 0 {
			continue
		}
		if beyond {
			break
		}
		for _, stored := range p.items {
			if start != nil && src.inTable(stored, start) <= 0 {
				continue
			}
			if item := src.item(stored); item != nil {
				beyond = beyond || size >= maxPage // one item more than the page reads: it tells that something follows
				candidates = append(candidates, item)
				size += item.Size()
			}
		}
	}
	return src.page(c, &in.pageInput, candidates), nil
}

// segment returns which part of how many the scan reads.
func (in *scanInput) segment() (segment, of int, err error) {
	switch {
	case in.Segment == nil && in.TotalSegments == nil:
		return 0, 1, nil
	case in.Segment == nil:
		return 0, 0, validation("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case in.TotalSegments == nil:
		return 0, 0, validation("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	}
	segment, of = *in.Segment, *in.TotalSegments
	switch {
	case of < 1 || of > maxSegments:
		return 0, 0, constraint(of, "totalSegments", "Member must have value between 1 and 1000000")
	case segment < 0 || segment >= of:
		return 0, 0, validation("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", segment, of)
	}
	return segment, of, nil
}
