package memdynamodb

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

type queryInput struct {
	pageInput
	KeyConditionExpression *string
	ScanIndexForward       *bool
}

func (s *Server) query(c *call, in *queryInput) (any, error) {
	if in.KeyConditionExpression == nil {
		return nil, validation("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	condition, err := expr.ParseKeyCondition(*in.KeyConditionExpression)
	if err != nil {
		return nil, err
	}
	s.lock()
	defer s.mu.Unlock()
	src, err := s.open(&in.pageInput, condition)
	if err != nil {
		return nil, err
	}
	keys := src.keys()
	wanted, err := condition.Bind(src.env, keys.partition, keys.sort, keys.types)
	if err != nil {
		return nil, err
	}
	if err := src.checkFilter(); err != nil {
		return nil, err
	}
	backwards := in.ScanIndexForward != nil && !*in.ScanIndexForward
	candidates := src.partition(wanted)
	order := src.inPartition
	if backwards {
		slices.Reverse(candidates)
		order = func(a, b attr.Map) int { return src.inPartition(b, a) }
	}
	if start := in.ExclusiveStartKey; start != nil {
		if keys.sort != "" && !wanted.Sort.Matches(start.Get(keys.sort)) {
			return nil, validation("The provided starting key does not match the range key predicate")
		}
		if keyText(start.Get(keys.partition)) != keyText(wanted.Partition) {
			return nil, validation("The provided starting key is outside query boundaries based on provided conditions")
		}
		candidates = after(candidates, func(item attr.Map) int { return order(item, start) })
	}
	return src.page(c, &in.pageInput, candidates), nil
}

// checkFilter refuses what the filter of a Query must not name: the key attributes, and attributes that the index does not have. For
// a Scan of the index the latter are attributes that no item has.
// https://github.com/sensedeep/dynamodb-onetable/issues/377 has AWS's error for a global index. DynamoDB Local, and PartiQL on AWS
// (nubo-db/dynamodb-conformance, partiqlIndexQualifier.test.ts), have it for local ones too, and only where a partition is read.
func (src *source) checkFilter() error {
	if src.filter == nil {
		return nil
	}
	named := src.filter.Attributes(src.env)
	for _, name := range src.keys().names() {
		if slices.Contains(named, name) {
			return validation("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
		}
	}
	missing := slices.DeleteFunc(named, func(name string) bool { return src.index == nil || src.index.projects(src.table, name) })
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return validation(invalidParameters+"Secondary index %s does not project one or more filter attributes: [%s]", src.index.name, strings.Join(missing, ", "))
}

// partition returns the items of one partition of the table or index that meet the sort condition, in the partition's
// order.
func (src *source) partition(wanted *expr.KeyRange) []attr.Map {
	keys := src.keys()
	var found []attr.Map
	add := func(p *partition) {
		for _, stored := range p.items {
			item := src.item(stored)
			if item == nil || keyText(item.Get(keys.partition)) != keyText(wanted.Partition) {
				continue
			}
			if keys.sort == "" || wanted.Sort.Matches(item.Get(keys.sort)) {
				found = append(found, item)
			}
		}
	}
	if keys.partition == src.table.keys.partition {
		if p := src.table.partitions[keyText(wanted.Partition)]; p != nil {
			add(p)
		}
	} else {
		for _, p := range src.table.ordered() {
			add(p)
		}
	}
	if src.index != nil {
		slices.SortStableFunc(found, src.inPartition)
	}
	return found
}

// inPartition orders the items of a partition by sort key. An index can have several items with one key; these are in the
// order of the table.
func (src *source) inPartition(a, b attr.Map) int {
	keys := src.keys()
	order := 0
	if keys.sort != "" {
		order = compareSort(a.Get(keys.sort), b.Get(keys.sort))
	}
	if order != 0 || src.index == nil {
		return order
	}
	return src.inTable(a, b)
}

// inTable orders items as Scan returns them.
func (src *source) inTable(a, b attr.Map) int {
	x, y := src.table.keys.at(a), src.table.keys.at(b)
	return cmp.Or(cmp.Compare(hashOf(x.partition), hashOf(y.partition)), cmp.Compare(x.partition, y.partition), compareSort(x.sort, y.sort))
}

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
	s.lock()
	defer s.mu.Unlock()
	src, err := s.open(&in.pageInput, nil)
	if err != nil {
		return nil, err
	}
	// An index is scanned in the order of the table. DynamoDB promises no order.
	width := uint64(math.MaxUint64)/uint64(of) + 1
	if of == 1 {
		width = math.MaxUint64
	}
	start := in.ExclusiveStartKey
	var from key
	if start != nil {
		from = src.table.keys.at(start)
		if of > 1 && hashOf(from.partition)/width != uint64(segment) {
			return nil, validation("The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d", of, segment)
		}
	}
	var candidates []attr.Map
	size, full := 0, false
	for _, p := range src.table.ordered() {
		if of > 1 && p.hash/width != uint64(segment) {
			continue
		}
		if start != nil && cmp.Or(cmp.Compare(p.hash, hashOf(from.partition)), cmp.Compare(p.key, from.partition)) < 0 {
			continue
		}
		if full {
			break
		}
		for _, stored := range p.items {
			if start != nil && src.inTable(stored, start) <= 0 {
				continue
			}
			if item := src.item(stored); item != nil {
				full = full || size >= maxPage // this item is one more than the page reads: it shows that an item follows
				candidates = append(candidates, item)
				size += item.Size()
			}
		}
	}
	return src.page(c, &in.pageInput, candidates), nil
}

// segment returns the number of the segment that the scan reads, from 0, and the count of segments.
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
