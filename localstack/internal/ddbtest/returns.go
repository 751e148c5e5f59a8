package ddbtest

import ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

const allOld = ddbtypes.ReturnValuesOnConditionCheckFailureAllOld

// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html#DDB-UpdateItem-request-ReturnValues
var returnCases = []testCase{
	{name: "return values/put", run: func(x *exam) {
		x.use("id:S")
		x.same("NONE", x.put(m{"id": "a", "v": 1}).attributes, nil)
		x.same("ALL_OLD", x.put(m{"id": "a", "v": 2}, args{returns: "ALL_OLD"}).attributes, m{"id": "a", "v": 1})
		x.same("ALL_OLD of none", x.put(m{"id": "b"}, args{returns: "ALL_OLD"}).attributes, nil)
		for _, wrong := range []ddbtypes.ReturnValue{"ALL_NEW", "UPDATED_OLD", "UPDATED_NEW", "DOG"} {
			x.refused(x.put(m{"id": "a"}, args{returns: wrong}).err, invalid)
		}
	}},
	{name: "return values/delete", run: func(x *exam) {
		x.use("id:S")
		x.fill(m{"id": "a", "v": 1})
		x.same("ALL_OLD", x.remove(m{"id": "a"}, args{returns: "ALL_OLD"}).attributes, m{"id": "a", "v": 1})
		x.same("ALL_OLD of none", x.remove(m{"id": "a"}, args{returns: "ALL_OLD"}).attributes, nil)
		for _, wrong := range []ddbtypes.ReturnValue{"ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"} {
			x.refused(x.remove(m{"id": "a"}, args{returns: wrong}).err, invalid)
		}
	}},
	{name: "return values/update, the whole item", run: func(x *exam) {
		x.use("id:S")
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
	{name: "return values/update, what it touched", run: func(x *exam) {
		x.use("id:S")
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
	{name: "return values/a failed condition's item", run: func(x *exam) {
		x.use("id:S")
		x.fill(m{"id": "a", "v": 1})
		for name, call := range map[string]func(args) answer{
			"put":    func(a args) answer { return x.put(m{"id": "a"}, a) },
			"update": func(a args) answer { a.update = "SET w = :v"; return x.update(m{"id": "a"}, a) },
			"delete": func(a args) answer { return x.remove(m{"id": "a"}, a) },
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
	{name: "return values/a failed condition on no item", run: func(x *exam) {
		x.use("id:S")
		got := x.put(m{"id": "a"}, args{condition: "v = :v", values: m{":v": 2}, onFailure: allOld})
		x.refused(got.err, conditionFailed)
		x.same("the item", got.failed, nil)
	}},
}
