package ddbtest

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

const isNew = "attribute_not_exists(id)"

var putCases = []testCase{
	{name: "put/replaces the whole item", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "old": 1, "both": 1}, m{"id": "a", "new": 2, "both": 2})
		x.stored(m{"id": "a"}, m{"id": "a", "new": 2, "both": 2})
	}},
	{name: "put/condition on no item", keys: "id:S", run: func(x *exam) {
		x.ok(x.put(m{"id": "a", "v": 1}, args{condition: isNew}).err)
		x.refused(x.put(m{"id": "a", "v": 2}, args{condition: isNew}).err, conditionFailed)
		x.stored(m{"id": "a"}, m{"id": "a", "v": 1})
	}},
	{name: "put/condition is on the stored item, not on the new one", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1})
		x.refused(x.put(m{"id": "a", "v": 2}, args{condition: "v = :v", values: m{":v": 2}}).err, conditionFailed)
		x.ok(x.put(m{"id": "a", "v": 2}, args{condition: "v = :v", values: m{":v": 1}}).err)
	}},
}

var getCases = []testCase{
	{name: "get/an item of every type", keys: "id:S", run: func(x *exam) {
		x.fill(sample)
		x.stored(m{"id": "a"}, sample)
	}},
}

var projectionCases = []testCase{
	{name: "projection/names, paths and elements", keys: "id:S", run: func(x *exam) {
		x.fill(sample)
		for expression, want := range map[string]m{
			"num":                      {"num": 5},
			"num, str":                 {"num": 5, "str": "hello"},
			"gone":                     {},
			"num, gone":                {"num": 5},
			"doc.kid":                  {"doc": m{"kid": m{"num": 2}}},
			"doc.kid.num":              {"doc": m{"kid": m{"num": 2}}},
			"#doc.#kid, num":           {"doc": m{"kid": m{"num": 2}}, "num": 5},
			"doc.#two":                 {"doc": m{"two.parts": 1}},
			"els[1]":                   {"els": l{"x"}},
			"els[2], els[0]":           {"els": l{1, l{"deep"}}}, // in the list's order, closed up
			"els[2][0]":                {"els": l{l{"deep"}}},
			"els[9]":                   {},
			"num.kid":                  {},
			"id":                       {"id": "a"},
			"doc.kid.num, doc.#status": {"doc": m{"kid": m{"num": 2}, "status": "reserved"}},
		} {
			out := suite.Get(x.project(expression))
			x.same(expression, out, want)
		}
	}},
	{name: "projection/refused", keys: "id:S", run: func(x *exam) {
		x.fill(sample)
		for _, expression := range []string{"status", "num,", ", num", "num num", "num = num", ":five", "doc, doc.kid", "num, num", "els[0], els[0]", "#undefined", "size(str)", "doc.kid, doc[0]", "num[", "*"} {
			_, err := x.project(expression)
			x.refused(err, invalid)
		}
	}},
}

func (x *exam) project(expression string) (item, error) {
	out, err := x.client().GetItem(x.ctx, &dynamodb.GetItemInput{
		TableName: &x.table, Key: attributes(m{"id": "a"}), ProjectionExpression: &expression, ExpressionAttributeNames: used(names, expression),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

var updateCases = []testCase{
	{name: "update/SET and ADD make an item", keys: "id:S", run: func(x *exam) {
		for _, word := range []string{"SET v = :v", "ADD v :v"} {
			x.ok(x.update(m{"id": word}, args{update: word, values: m{":v": 1}}).err)
			x.stored(m{"id": word}, m{"id": word, "v": 1})
		}
	}},
	{name: "update/without an expression makes an item of the key", keys: "id:S", run: func(x *exam) {
		x.ok(x.update(m{"id": "a"}, args{}).err)
		x.stored(m{"id": "a"}, m{"id": "a"})
		x.fill(m{"id": "b", "v": 1})
		x.ok(x.update(m{"id": "b"}, args{}).err)
		x.stored(m{"id": "b"}, m{"id": "b", "v": 1})
	}},
	{name: "update/REMOVE and DELETE of no item make none", keys: "id:S", run: func(x *exam) {
		for _, update := range []string{"REMOVE v", "REMOVE v.w", "REMOVE v[0]", "DELETE v :v"} {
			a := x.update(m{"id": "a"}, args{update: update, values: m{":v": ss{"x"}}, returns: "ALL_NEW"})
			x.ok(a.err)
			x.same(update, a.attributes, nil)
			x.stored(m{"id": "a"}, nil)
		}
	}},
	{name: "update/a failed condition makes no item", keys: "id:S", run: func(x *exam) {
		x.refused(x.update(m{"id": "a"}, args{update: "SET v = :v", condition: "v = :v", values: m{":v": 1}}).err, conditionFailed)
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "update/condition before an operand that is missing", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a"})
		x.refused(x.update(m{"id": "a"}, args{update: "SET v = gone", condition: "v = :v", values: m{":v": 1}}).err, conditionFailed)
	}},
	{name: "update/of the record of an idempotency store", keys: "id:S", run: func(x *exam) {
		names := map[string]string{"#id": "id", "#status": "status", "#owner": "owner", "#until": "in_progress_expiration", "#fence": "fence", "#data": "data"}
		acquire := args{
			update: "SET #status=:p, #owner=:me, #fence=:fence, #until=:until REMOVE #data",
			condition: "(attribute_not_exists(#id)) OR (#status=:p AND #owner=:me AND #until=:until AND #fence=:fence) OR " +
				"(#status=:p AND #until < :now AND (attribute_not_exists(#owner) OR #owner<>:me) AND (attribute_not_exists(#fence) OR #fence < :fence))",
			names: names, returns: ddbtypes.ReturnValueAllOld, onFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
		}
		try := func(owner string, now, until, fence int) result {
			acquire.values = m{":p": "INPROGRESS", ":me": owner, ":now": now, ":until": until, ":fence": fence}
			return x.update(m{"id": "a"}, acquire)
		}
		first := m{"id": "a", "status": "INPROGRESS", "owner": "a", "in_progress_expiration": 100, "fence": 1}
		x.ok(try("a", 0, 100, 1).err)
		again := try("a", 0, 100, 1)
		x.ok(again.err)
		x.same("before the repetition", again.attributes, first)
		live := try("b", 50, 150, 2)
		x.refused(live.err, conditionFailed)
		x.same("the live one", live.failed, first)
		x.refused(try("b", 101, 201, 1).err, conditionFailed) // the fence does not grow
		x.ok(try("b", 101, 201, 2).err)
		x.refused(try("a", 0, 100, 1).err, conditionFailed)
	}},
}

var deleteCases = []testCase{
	{name: "call/no table", run: func(x *exam) {
		x.table = x.newName()
		_, err := x.project("num")
		_, described := x.client().DescribeTimeToLive(x.ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &x.table})
		for call, err := range map[string]error{
			"put": x.put(m{"id": "a"}).err, "get": err, "update": x.update(m{"id": "a"}, args{update: "REMOVE v"}).err, "delete": x.remove(m{"id": "a"}).err,
			"set TTL": x.setTTL("expires", true), "describe TTL": described, "change": x.change(protect(true)),
		} {
			x.refusedAs(call, err, notFound)
		}
	}},
	{name: "delete/an item, and none", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a"})
		x.ok(x.remove(m{"id": "a"}).err)
		x.stored(m{"id": "a"}, nil)
		x.ok(x.remove(m{"id": "a"}).err)
	}},
	{name: "delete/condition", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1})
		x.refused(x.remove(m{"id": "a"}, args{condition: "v = :v", values: m{":v": 2}}).err, conditionFailed)
		x.stored(m{"id": "a"}, m{"id": "a", "v": 1})
		x.ok(x.remove(m{"id": "a"}, args{condition: "v = :v", values: m{":v": 1}}).err)
		x.refused(x.remove(m{"id": "a"}, args{condition: "v = :v", values: m{":v": 1}}).err, conditionFailed)
		x.ok(x.remove(m{"id": "a"}, args{condition: isNew}).err)
	}},
}

const allOld = ddbtypes.ReturnValuesOnConditionCheckFailureAllOld

// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html#DDB-UpdateItem-request-ReturnValues
var returnCases = []testCase{
	{name: "return values/put", keys: "id:S", run: func(x *exam) {
		x.same("NONE", x.put(m{"id": "a", "v": 1}).attributes, nil)
		x.same("ALL_OLD", x.put(m{"id": "a", "v": 2}, args{returns: "ALL_OLD"}).attributes, m{"id": "a", "v": 1})
		x.same("ALL_OLD of none", x.put(m{"id": "b"}, args{returns: "ALL_OLD"}).attributes, nil)
		for _, wrong := range []ddbtypes.ReturnValue{"ALL_NEW", "UPDATED_OLD", "UPDATED_NEW", "DOG"} {
			x.refused(x.put(m{"id": "a"}, args{returns: wrong}).err, invalid)
		}
	}},
	{name: "return values/delete", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1})
		x.same("ALL_OLD", x.remove(m{"id": "a"}, args{returns: "ALL_OLD"}).attributes, m{"id": "a", "v": 1})
		x.same("ALL_OLD of none", x.remove(m{"id": "a"}, args{returns: "ALL_OLD"}).attributes, nil)
		for _, wrong := range []ddbtypes.ReturnValue{"ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"} {
			x.refused(x.remove(m{"id": "a"}, args{returns: wrong}).err, invalid)
		}
	}},
	{name: "return values/update, the whole item", keys: "id:S", run: func(x *exam) {
		set := func(v int, r ddbtypes.ReturnValue) item {
			a := x.update(m{"id": "a"}, args{update: "SET v = :v", values: m{":v": v}, returns: r})
			x.ok(a.err)
			return a.attributes
		}
		x.same("ALL_OLD of none", set(1, "ALL_OLD"), nil)
		x.same("NONE", set(2, "NONE"), nil)
		x.same("ALL_OLD", set(3, "ALL_OLD"), m{"id": "a", "v": 2})
		x.same("ALL_NEW", set(4, "ALL_NEW"), m{"id": "a", "v": 4})
	}},
	{name: "return values/update, what it touched", keys: "id:S", run: func(x *exam) {
		for _, c := range []struct {
			update   string
			old, new m
		}{
			{"SET num = :n", m{"num": 5}, m{"num": 7}},
			{"SET num = num + :one, str = :s", m{"num": 5, "str": "old"}, m{"num": 6, "str": "new"}},
			{"SET fresh = :n", nil, m{"fresh": 7}},
			{"REMOVE str", m{"str": "old"}, nil},
			{"REMOVE fresh", nil, nil},
			{"SET num = :n REMOVE str", m{"num": 5, "str": "old"}, m{"num": 7}},
			{"SET doc.kid = :n", m{"doc": m{"kid": 1}}, m{"doc": m{"kid": 7}}},
			{"SET els[1] = :n", m{"els": l{2}}, m{"els": l{7}}},
			{"ADD num :n", m{"num": 5}, m{"num": 12}},
			{"DELETE strs :ss", m{"strs": ss{"x", "y"}}, m{"strs": ss{"x"}}},
			{"DELETE strs :xy", m{"strs": ss{"x", "y"}}, nil},
		} {
			for returns, want := range map[ddbtypes.ReturnValue]m{"UPDATED_OLD": c.old, "UPDATED_NEW": c.new} {
				x.fill(updateBase)
				a := x.update(m{"id": "a"}, args{update: c.update, values: updateOperands, returns: returns})
				x.ok(a.err)
				x.same(string(returns)+" of "+c.update, a.attributes, want)
			}
		}
	}},
	{name: "return values/a failed condition's item", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1})
		for name, call := range map[string]func(args) result{
			"put":    func(a args) result { return x.put(m{"id": "a"}, a) },
			"update": func(a args) result { a.update = "SET w = :v"; return x.update(m{"id": "a"}, a) },
			"delete": func(a args) result { return x.remove(m{"id": "a"}, a) },
		} {
			a := args{condition: "v = :v", values: m{":v": 2}}
			for onFailure, want := range map[ddbtypes.ReturnValuesOnConditionCheckFailure]m{"": nil, "NONE": nil, allOld: {"id": "a", "v": 1}} {
				a.onFailure = onFailure
				got := call(a)
				x.refused(got.err, conditionFailed)
				x.same(name+" "+string(onFailure), got.failed, want)
			}
			a.onFailure = "DOG"
			x.refused(call(a).err, invalid)
		}
	}},
	{name: "return values/a failed condition on no item", keys: "id:S", run: func(x *exam) {
		got := x.put(m{"id": "a"}, args{condition: "v = :v", values: m{":v": 2}, onFailure: allOld})
		x.refused(got.err, conditionFailed)
		x.same("the item", got.failed, nil)
	}},
}
