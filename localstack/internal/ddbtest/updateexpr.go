package ddbtest

import (
	"maps"
	"slices"
	"strings"
)

// updateBase is what the update cases begin with.
var updateBase = m{"id": "a", "num": 5, "str": "old", "els": l{1, 2, 3}, "doc": m{"kid": 1, "rest": "x"}, "strs": ss{"x", "y"}, "nums": ns{"1", "2"}, "bins": bs{[]byte("x")}}

var updateOperands = m{
	":n": 7, ":one": 1, ":s": "new", ":l": l{9}, ":m": m{"deep": 1}, ":ss": ss{"y", "z"}, ":ns": ns{"2", "3"}, ":bs": bs{[]byte("x"), []byte("y")}, ":xy": ss{"x", "y"},
	":null": nil, ":e": l{}, ":half": n("0.5"), ":neg": -7, ":true": true,
}

// changed is the base with some attributes replaced; gone removes one.
func changed(with m) m {
	out := maps.Clone(updateBase)
	for name, v := range with {
		if v == gone {
			delete(out, name)
			continue
		}
		out[name] = v
	}
	return out
}

type mark string

const gone mark = "gone"

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
func updateExpressionCases() []testCase {
	updates := map[string]m{
		"SET num = :n": {"num": 7}, "SET fresh = :s": {"fresh": "new"}, "SET str = :null": {"str": nil}, "SET str = :m": {"str": m{"deep": 1}},
		"SET num = (num + :n)": {"num": 12}, "SET num = (num) + (:n)": {"num": 12}, "SET num = ((num) - :n)": {"num": -2},
		"SET num = :n, str = :s": {"num": 7, "str": "new"}, "set num = :n": {"num": 7},
		"SET num = num + :n": {"num": 12}, "SET num = num - :n": {"num": -2}, "SET num = :n - num": {"num": 2}, "SET num = num + :half": {"num": n("5.5")}, "SET fresh = num + num": {"fresh": 10}, "SET fresh = :n + :half": {"fresh": n("7.5")},
		"SET fresh = str": {"fresh": "old"}, "SET fresh = doc.kid + :one": {"fresh": 2}, "SET num = els[0] + :n": {"num": 8},
		"SET num = str, str = num":                              {"num": "old", "str": 5}, // every operand is read before anything is written
		"SET num = if_not_exists(num, :n)":                      {},
		"SET fresh = if_not_exists(fresh, :n)":                  {"fresh": 7},
		"SET fresh = if_not_exists(fresh, num)":                 {"fresh": 5},
		"SET fresh = if_not_exists(num, :n) + :one":             {"fresh": 6},
		"SET num = :one + if_not_exists(fresh, :n)":             {"num": 8},
		"SET doc.fresh = if_not_exists(num, :n)":                {"doc": m{"kid": 1, "rest": "x", "fresh": 5}},
		"SET els = list_append(els, :l)":                        {"els": l{1, 2, 3, 9}},
		"SET els = list_append(:l, els)":                        {"els": l{9, 1, 2, 3}},
		"SET fresh = list_append(:l, :l)":                       {"fresh": l{9, 9}},
		"SET fresh = list_append(:e, :l)":                       {"fresh": l{9}},
		"SET fresh = list_append(if_not_exists(fresh, :e), :l)": {"fresh": l{9}},
		"SET doc.kid = :n":                                      {"doc": m{"kid": 7, "rest": "x"}},
		"SET doc.fresh = :m":                                    {"doc": m{"kid": 1, "rest": "x", "fresh": m{"deep": 1}}},
		"SET #doc.#kid = :n, #doc.rest = :s":                    {"doc": m{"kid": 7, "rest": "new"}},
		"SET els[1] = :n":                                       {"els": l{1, 7, 3}},
		"SET els[0] = :n, els[2] = :s":                          {"els": l{7, 2, "new"}},
		"SET els[99] = :n":                                      {"els": l{1, 2, 3, 7}}, // beyond the end appends
		"SET els[50] = :n, els[40] = :s":                        {"els": l{1, 2, 3, "new", 7}},
		"SET els[0] = els[1], els[1] = els[0]":                  {"els": l{2, 1, 3}},
		"REMOVE str":                                            {"str": gone},
		"REMOVE str, num":                                       {"str": gone, "num": gone},
		"REMOVE fresh":                                          {},
		"REMOVE doc.kid":                                        {"doc": m{"rest": "x"}},
		"REMOVE doc.fresh":                                      {},
		"REMOVE els[0]":                                         {"els": l{2, 3}},
		"REMOVE els[0], els[1]":                                 {"els": l{3}}, // positions of the list as it was
		"REMOVE els[2], els[0]":                                 {"els": l{2}},
		"REMOVE els[9]":                                         {},
		"ADD num :n":                                            {"num": 12},
		"ADD num :neg":                                          {"num": -2},
		"ADD fresh :n":                                          {"fresh": 7},
		"ADD strs :ss":                                          {"strs": ss{"x", "y", "z"}},
		"ADD nums :ns":                                          {"nums": ns{"1", "2", "3"}},
		"ADD bins :bs":                                          {"bins": bs{[]byte("x"), []byte("y")}},
		"ADD fresh :ss":                                         {"fresh": ss{"y", "z"}},
		"ADD doc.kid :n":                                        {"doc": m{"kid": 8, "rest": "x"}},
		"ADD doc.fresh :n":                                      {"doc": m{"kid": 1, "rest": "x", "fresh": 7}},
		"ADD num :n, strs :ss":                                  {"num": 12, "strs": ss{"x", "y", "z"}},
		"DELETE strs :ss":                                       {"strs": ss{"x"}},
		"DELETE strs :xy":                                       {"strs": gone}, // a set is never empty
		"DELETE nums :ns":                                       {"nums": ns{"1"}},
		"DELETE bins :bs":                                       {"bins": gone},
		"DELETE fresh :ss":                                      {},
		"SET num = :n REMOVE str ADD doc.kid :n DELETE strs :ss": {"num": 7, "str": gone, "doc": m{"kid": 8, "rest": "x"}, "strs": ss{"x"}},
		"DELETE strs :ss ADD doc.kid :n REMOVE str SET num = :n": {"num": 7, "str": gone, "doc": m{"kid": 8, "rest": "x"}, "strs": ss{"x"}},
		"REMOVE num SET str = num":                               {"num": gone, "str": 5},
	}
	var all []testCase
	for _, update := range slices.Sorted(maps.Keys(updates)) {
		all = append(all, testCase{name: "update expression/" + update, keys: "id:S", run: func(x *exam) {
			x.fill(updateBase)
			x.ok(x.update(m{"id": "a"}, args{update: update, names: names, values: updateOperands}).err)
			x.stored(m{"id": "a"}, changed(updates[update]))
		}})
	}
	return all
}

// The texts of those that only the item brings out are among the reasons that cancel a transaction:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
func refusedUpdateCases() []testCase {
	const (
		missing = "The provided expression refers to an attribute that does not exist in the item"
		path    = "The document path provided in the update expression is invalid for update"
		kind    = "An operand in the update expression has an incorrect data type"
	)
	updates := map[string]string{
		"SET fresh = gone": missing, "SET num = gone + :n": missing, "SET els = list_append(gone, :l)": missing,
		"SET gone.kid = :n": path, "SET num.kid = :n": path, "SET str[0] = :n": path, "SET doc[0] = :n": path, "SET els.kid = :n": path, "ADD gone.kid :n": "",
		"SET num = str + :n": kind, "SET els = list_append(str, :l)": kind, "ADD str :n": kind, "ADD num :ss": kind, "ADD strs :ns": kind, "DELETE num :ss": kind, "DELETE strs :ns": kind,
		// These need no item.
		" ": "", "num = :n": "", "SET": "", "SET num": "", "SET num = ": "", "SET num = :n,": "", "SET num :n": "", "SET :n = num": "", "SET num = :n SET str = :s": "", "REMOVE str REMOVE num": "", "HELLO num": "",
		"SET num = :n + :n + :n": "", "SET num = :n * :n": "", "SET num = size(str)": "", "SET num = attribute_exists(num)": "", "SET num = list_append(:l)": "", "SET num = if_not_exists(:n, :n)": "", "SET num = dog(:n)": "",
		"SET num = :s + :n": "", "SET els = list_append(els, :s)": "", "SET els = list_append(list_append(els, :l), :l)": "",
		"ADD num str": "", "ADD num": "", "ADD num :s": "", "ADD els :l": "", "ADD doc :m": "", "ADD num :true": "", "DELETE strs": "", "DELETE strs strs": "", "DELETE num :n": "", "DELETE els :l": "",
		"SET num = :n, num = :one": "", "SET num = :n REMOVE num": "", "SET doc.kid = :n, doc = :m": "", "SET els[0] = :n REMOVE els[0]": "", "SET doc.kid = :n, doc[0] = :n": "", "SET #num = :n, num = :one": "",
		"SET id = :s": "", "REMOVE id": "", "ADD id :n": "", "SET #id = :s": "", "SET num = :n num": "", "REMOVE num = :n": "",
		// floci-io/floci, ProjectionEvaluatorTest, rejectsFirstListIndexPastTheAllowableRange. Only removals: dynoxide fills a list up
		// to an index that is set.
		"REMOVE els[4294967295]": "List index is not within the allowable range; index: [4294967295]", "REMOVE els[12345678901234]": "List index is not within the allowable range; index: [12345678901234]",
	}
	var all []testCase
	for _, update := range slices.Sorted(maps.Keys(updates)) {
		all = append(all, testCase{name: "refused update/" + update, keys: "id:S", run: func(x *exam) {
			x.fill(updateBase)
			x.refused(x.update(m{"id": "a"}, args{update: update, names: names, values: updateOperands}).err, invalid, updates[update])
			x.stored(m{"id": "a"}, updateBase)
			if strings.TrimSpace(update) != "" && updates[update] == "" {
				// Refused whether or not there is an item.
				x.refused(x.update(m{"id": "none"}, args{update: update, names: names, values: updateOperands}).err, invalid)
				x.stored(m{"id": "none"}, nil)
			}
		}})
	}
	return all
}
