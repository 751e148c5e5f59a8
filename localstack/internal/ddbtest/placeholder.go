package ddbtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// emptyCondition sends a condition that args would leave out.
func (x *exam) emptyCondition(condition string) error {
	_, err := x.client().PutItem(x.ctx, &dynamodb.PutItemInput{TableName: &x.table, Item: attributes(sample), ConditionExpression: &condition})
	return err
}

// placeholderCases send names and values as they are, unused ones too.
func placeholderCases() []testCase {
	type request struct {
		condition, update string
		names             map[string]string
		values            m
	}
	send := func(x *exam, r request) error {
		_, err := x.client().UpdateItem(x.ctx, &dynamodb.UpdateItemInput{
			TableName: &x.table, Key: attributes(m{"id": "a"}), ConditionExpression: optional(r.condition), UpdateExpression: optional(r.update),
			ExpressionAttributeNames: r.names, ExpressionAttributeValues: attributes(r.values),
		})
		return err
	}
	var all []testCase
	requests := map[string]struct {
		request
		refused bool
	}{
		"a value undefined":             {request{condition: "num = :five"}, true},
		"a name undefined":              {request{condition: "attribute_exists(#num)"}, true},
		"a value unused":                {request{condition: "num = :five", values: m{":five": 5, ":six": 6}}, true},
		"a name unused":                 {request{condition: "num = :five", values: m{":five": 5}, names: map[string]string{"#num": "num"}}, true},
		"values without expressions":    {request{values: m{":five": 5}}, true},
		"names without expressions":     {request{names: map[string]string{"#num": "num"}}, true},
		"a value without its colon":     {request{condition: "num = :five", values: m{":five": 5, "six": 6}}, true},
		"a name without its hash":       {request{condition: "attribute_exists(#num)", names: map[string]string{"#num": "num", "str": "str"}}, true},
		"a value with a bad key":        {request{condition: "num = :five", values: m{":five": 5, ":s-x": 6}}, true},
		"used twice, by both":           {request{condition: "#num = :five", update: "SET #num = :five", values: m{":five": 5}, names: map[string]string{"#num": "num"}}, false},
		"used where nothing is decided": {request{condition: "num = :five OR str = :x", values: m{":five": 5, ":x": "x"}}, false},
		"two names for one attribute":   {request{condition: "#a = :five OR #b = :five", values: m{":five": 5}, names: map[string]string{"#a": "num", "#b": "num"}}, false},
		"digits and underscores":        {request{condition: "#1_a = :2_b", values: m{":2_b": 5}, names: map[string]string{"#1_a": "num"}}, false},
		"a name that is a path":         {request{condition: "attribute_exists(#p)", names: map[string]string{"#p": "doc.kid"}}, false}, // one attribute of that name, which is not there
		"a value as a whole expression": {request{condition: ":five", values: m{":five": 5}}, true},
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		c := requests[name]
		all = append(all, testCase{name: "placeholder/" + name, run: func(x *exam) {
			x.use("id:S")
			x.fill(sample)
			err := send(x, c.request)
			switch {
			case c.refused:
				x.refused(err, invalid)
			case name == "a name that is a path":
				x.refused(err, conditionFailed)
			default:
				x.ok(err)
			}
		}})
	}
	return append(all,
		testCase{name: "placeholder/a hundred operands of IN", run: func(x *exam) {
			x.use("id:S")
			x.fill(sample)
			x.ok(send(x, request{condition: "num IN (" + list(100) + ")", values: numbered(100)}))
			x.refused(send(x, request{condition: "num IN (" + list(101) + ")", values: numbered(101)}), invalid)
		}},
		testCase{name: "placeholder/an expression of 4 KB", run: func(x *exam) {
			x.use("id:S")
			x.fill(sample)
			pad := strings.Repeat(" ", 4096-len("num=:v"))
			x.ok(send(x, request{condition: "num=:v" + pad, values: m{":v": 5}}))
			x.refused(send(x, request{condition: "num=:v" + pad + " ", values: m{":v": 5}}), invalid)
		}},
		testCase{name: "placeholder/three hundred operators of a condition", run: func(x *exam) {
			x.use("id:S")
			x.fill(sample)
			chain := func(comparisons int) string { // each an operator, and an OR between two
				return strings.TrimSuffix(strings.Repeat("a<:v OR ", comparisons), " OR ")
			}
			x.refused(send(x, request{condition: chain(150), values: m{":v": 5}}), conditionFailed)
			x.refused(send(x, request{condition: chain(151), values: m{":v": 5}}), invalid)
		}},
		testCase{name: "placeholder/three hundred operators of an update", run: func(x *exam) {
			x.use("id:S")
			x.fill(sample)
			sums := func(n int) string {
				var all []string
				for i := range n {
					all = append(all, fmt.Sprintf("a%d=:v+:v", i))
				}
				return "SET " + strings.Join(all, ",")
			}
			x.ok(send(x, request{update: sums(300), values: m{":v": 5}}))
			x.refused(send(x, request{update: sums(301), values: m{":v": 5}}), invalid)
		}},
	)
}

func list(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(":v", i))
	}
	return strings.Join(all, ",")
}

func numbered(n int) m {
	all := m{}
	for i := range n {
		all[fmt.Sprint(":v", i)] = i
	}
	return all
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
var reservedCases = []testCase{
	{name: "reserved words/refused in any case", run: func(x *exam) {
		x.use("id:S")
		x.fill(sample)
		for _, word := range []string{"status", "Status", "STATUS", "data", "owner", "ttl", "error", "name", "value", "size", "set", "abort", "zone", "url", "hash", "comment", "timestamp", "year", "counter", "users"} {
			x.refused(x.put(sample, args{condition: "attribute_not_exists(" + word + ")"}).err, invalid)
			x.refused(x.update(m{"id": "a"}, args{update: "SET " + word + " = :five", values: operands}).err, invalid)
			x.refused(x.update(m{"id": "a"}, args{update: "SET doc." + word + " = :five", values: operands}).err, invalid)
		}
	}},
	{name: "reserved words/by placeholder", run: func(x *exam) {
		x.use("id:S")
		x.ok(x.update(m{"id": "a"}, args{update: "SET #status = :five", names: names, values: operands}).err)
		x.stored(m{"id": "a"}, m{"id": "a", "status": 5})
	}},
	{name: "reserved words/others are free", run: func(x *exam) {
		x.use("id:S")
		for _, word := range []string{"id", "expiration", "fence", "attempts", "tx", "validation", "in_progress_expiration", "statuses", "a1"} {
			x.ok(x.put(m{"id": "new " + word}, args{condition: "attribute_not_exists(" + word + ")"}).err)
		}
	}},
}
