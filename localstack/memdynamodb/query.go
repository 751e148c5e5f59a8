package memdynamodb

import (
	"cmp"
	"iter"
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
	if err := in.valid(); err != nil {
		return nil, err
	}
	if in.Limit != nil && *in.Limit < 1 { // AWS's text is another one than that of Scan
		return nil, validation("1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1")
	}
	if in.KeyConditionExpression == nil {
		return nil, validation("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	condition, err := expr.ParseKeyCondition(*in.KeyConditionExpression)
	if err != nil {
		return nil, err
	}
	src, err := s.open(&in.pageInput, condition)
	if err != nil {
		return nil, err
	}
	defer src.table.mu.Unlock()
	keys := src.keys()
	wanted, err := condition.Bind(src.env, keys.partition, keys.sort, keys.types)
	if err != nil {
		return nil, err
	}
	if err := src.checkEmpty(wanted); err != nil {
		return nil, err
	}
	if err := src.checkFilter(); err != nil {
		return nil, err
	}
	start := in.ExclusiveStartKey
	if start != nil {
		if keys.sort != "" && !wanted.Sort.Matches(start.Get(keys.sort)) {
			return nil, validation("The provided starting key does not match the range key predicate")
		}
		switch {
		case keyText(start.Get(keys.partition)) == keyText(wanted.Partition):
		case wanted.Sort != nil: // as AWS says it, of any condition on the sort key
			return nil, validation("The query can return at most one row and cannot be restarted")
		default:
			return nil, validation("The provided starting key is outside query boundaries based on provided conditions")
		}
	}
	return src.page(c, &in.pageInput, src.partition(wanted, start, in.ScanIndexForward != nil && !*in.ScanIndexForward)), nil
}

// checkEmpty refuses a condition with an empty value, which no key has.
func (src *source) checkEmpty(wanted *expr.KeyRange) error {
	keys := src.keys()
	check := func(name string, v attr.Value) error {
		if src.index != nil {
			return src.index.checkEmpty(name, v)
		}
		return checkEmpty(name, v)
	}
	if err := check(keys.partition, wanted.Partition); err != nil {
		return err
	}
	for _, v := range wanted.Sort.Values() {
		if err := check(keys.sort, v); err != nil {
			return err
		}
	}
	return nil
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
	missing := slices.DeleteFunc(named, func(name string) bool { return src.index == nil || src.index.projects(name) })
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return validation(invalidParameters+"Secondary index %s does not project one or more filter attributes: [%s]", src.index.name, strings.Join(missing, ", "))
}

// partition returns the rows of one partition that meet the sort condition and are behind start, if there is one, in their order or
// backwards.
func (src *source) partition(wanted *expr.KeyRange, start attr.Map, backwards bool) iter.Seq[*row] {
	rows := src.rows()
	inPartition := rows.place(key{partition: keyText(wanted.Partition)})
	var within order = func(e *row) int {
		if o := inPartition(e); o != 0 || rows.keys.sort == "" {
			return o
		}
		return wanted.Sort.Order(e.item.Get(rows.keys.sort))
	}
	var found iter.Seq[*row]
	switch {
	case backwards && start != nil:
		found = rows.before(rows.seek(rows.placeOf(start)))
	case backwards:
		found = rows.before(rows.seek(within.behind()))
	case start != nil:
		found = rows.from(rows.seek(rows.placeOf(start).behind()))
	default:
		found = rows.from(rows.seek(within))
	}
	return func(yield func(*row) bool) {
		for e := range found {
			if within(e) != 0 || !yield(e) {
				return
			}
		}
	}
}

type scanInput struct {
	pageInput
	Segment, TotalSegments *int
}

const maxSegments = 1_000_000

func (s *Server) scan(c *call, in *scanInput) (any, error) {
	if err := in.valid(); err != nil {
		return nil, err
	}
	segment, of, err := in.segment()
	if err != nil {
		return nil, err
	}
	src, err := s.open(&in.pageInput, nil)
	if err != nil {
		return nil, err
	}
	defer src.table.mu.Unlock()
	rows := src.rows()
	width := uint64(math.MaxUint64)
	if of > 1 {
		width = width/uint64(of) + 1
	}
	inSegment := func(hash uint64) bool { return of == 1 || hash/width == uint64(segment) }
	from := rows.seek(func(e *row) int { return cmp.Compare(e.hash, uint64(segment)*width) })
	if start := in.ExclusiveStartKey; start != nil {
		if !inSegment(hashOf(keyText(start.Get(rows.keys.partition)))) {
			return nil, validation("The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d", of, segment)
		}
		from = rows.seek(rows.placeOf(start).behind())
	}
	return src.page(c, &in.pageInput, func(yield func(*row) bool) {
		for e := range rows.from(from) {
			if !inSegment(e.hash) || !yield(e) {
				return
			}
		}
	}), nil
}

// valid checks what needs no look at the table.
func (in *scanInput) valid() error {
	return constraints(
		validRange(in.Limit, "limit", 1, math.MaxInt32), validRange(in.TotalSegments, "totalSegments", 1, maxSegments), in.pageInput.valid(),
		validRange(in.Segment, "segment", 0, maxSegments-1),
	)
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
	if segment >= of {
		return 0, 0, validation("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", segment, of)
	}
	return segment, of, nil
}
