package ddbtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// sample has a value of every type; its key is id.
var sample = m{
	"id": "a", "num": 5, "neg": -3, "frac": n("0.5"), "str": "hello", "blank": "", "bin": []byte("bytes"), "yes": true, "nul": nil,
	"els": l{1, "x", l{"deep"}}, "doc": m{"kid": m{"num": 2}, "status": "reserved", "two.parts": 1},
	"strs": ss{"x", "y"}, "nums": ns{"1", "2"}, "bins": bs{[]byte("x")}, "vacant": m{}, "noels": l{}, "two.parts": "dotted", "clef": "é𝄞",
}

// operands are what the placeholders of these cases stand for; each case sends those that it names.
var (
	operands = m{
		":five": 5, ":six": 6, ":four": 4, ":one": 1, ":two": 2, ":three": 3, ":fiveish": n("5.000"), ":half": n("0.5"), ":neg": -3, ":low": -4, ":ten": 10,
		":five_s": "5", ":hello": "hello", ":hel": "hel", ":ell": "ell", ":x": "x", ":z": "z", ":empty": "", ":upper": "HELLO", ":deep": "deep", ":reserved": "reserved",
		":bytes": []byte("bytes"), ":by": []byte("by"), ":yt": []byte("yt"), ":bx": []byte("x"), ":true": true, ":false": false, ":null": nil,
		":list": l{1, "x", l{"deep"}}, ":list2": l{"x", 1}, ":map": m{"num": 2}, ":strs": ss{"y", "x"}, ":nums": ns{"2.0", "1"}, ":bins": bs{[]byte("x")}, ":onestr": ss{"x"},
		":S": "S", ":N": "N", ":B": "B", ":BOOL": "BOOL", ":NULL": "NULL", ":SS": "SS", ":NS": "NS", ":BS": "BS", ":L": "L", ":M": "M", ":dog": "DOG",
	}
	names = map[string]string{
		"#num": "num", "#str": "str", "#doc": "doc", "#kid": "kid", "#status": "status", "#two": "two.parts", "#gone": "gone", "#id": "id", "#els": "els",
	}
)

// holds makes a case of each condition: it must hold for the sample, or must not.
func holds(group string, conditions map[string]bool) []testCase {
	var all []testCase
	for _, condition := range slices.Sorted(maps.Keys(conditions)) {
		want := conditions[condition]
		all = append(all, testCase{name: group + "/" + condition, keys: "id:S", run: func(x *exam) {
			x.fill(sample)
			err := x.put(sample, args{condition: condition, names: names, values: operands}).err
			if want {
				x.ok(err)
				return
			}
			x.refused(err, conditionFailed, "The conditional request failed")
		}})
	}
	return all
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
func conditionCases() []testCase {
	return holds("condition", map[string]bool{
		// Comparators, type by type.
		"num = :five": true, "num = :six": false, "num <> :six": true, "num <> :five": false, "num < :six": true, "num < :five": false,
		"num <= :five": true, "num <= :four": false, "num > :four": true, "num > :five": false, "num >= :five": true, "num >= :six": false,
		"num = :fiveish": true, "frac = :half": true, "neg < :one": true, "neg > :low": true, "num < :ten": true,
		"str = :hello": true, "str < :x": true, "str > :hel": true, "str = :upper": false, "str > :upper": true, "blank = :empty": true,
		"bin = :bytes": true, "bin > :by": true, "yes = :true": true, "yes = :false": false, "nul = :null": true,
		"els = :list": true, "els = :list2": false, "doc.kid = :map": true, "strs = :strs": true, "nums = :nums": true, "bins = :bins": true, "strs = :onestr": false,
		// A value of another type is neither less nor greater, and not equal.
		"num = :five_s": false, "num <> :five_s": true, "num < :x": false, "num > :x": false, "str >= :five": false,
		// A missing attribute.
		"gone = :five": false, "gone <> :five": true, "gone < :five": false, "gone >= :five": false, "num > gone": false,
		// Either side may be a path or a value.
		":five = num": true, ":four < num": true, "neg < num": true, "num < neg": false,
		// Paths.
		"els[0] = :one": true, "els[1] = :x": true, "els[2][0] = :deep": true, "els[9] = :one": false, "doc.kid.num = :two": true,
		"#doc.#kid.num = :two": true, "doc.#status = :reserved": true, "#two = :x": false, "attribute_exists(doc.#two)": true, "attribute_exists(#two)": true,
		"num.kid = :two": false, "doc[0] = :two": false, "els.num = :one": false,
		// BETWEEN takes in both ends; IN.
		"num BETWEEN :five AND :six": true, "num BETWEEN :four AND :five": true, "num BETWEEN :six AND :ten": false, "str BETWEEN :hel AND :x": true, "gone BETWEEN :one AND :six": false, "num BETWEEN neg AND :ten": true, ":five BETWEEN :four AND num": true,
		"num IN (:one, :five)": true, "num IN (:one)": false, "str IN (:five, :hello)": true, "gone IN (:one)": false, "num IN (neg, :five)": true, "strs IN (:strs)": true,
		// NOT before AND before OR; parentheses before all.
		"num = :five OR num = :six AND str = :x": true, "(num = :five OR num = :six) AND str = :x": false, "str = :x AND num = :six OR num = :five": true,
		"NOT num = :six AND str = :hello": true, "NOT (num = :six AND str = :hello)": true, "NOT num = :five OR str = :hello": true, "NOT (num = :five OR str = :hello)": false,
		"NOT NOT num = :five": true, "NOT (NOT num = :five)": true, "num = :six OR NOT str = :x AND yes = :true": true,
		"num between :four and :six and not str = :x": true, "num In (:five) Or attribute_exists(gone)": true,
		"num BETWEEN :four AND :six AND str = :hello": true, "NOT num BETWEEN :six AND :ten": true,
		// One pair of parentheses around an operand.
		"(num) = (:five)": true, "((num) = :six)": false, "(size(str)) IN ((:four), (:five))": true, "contains((strs), (:x))": true,
		// Space is free.
		"num=:five AND(str=:hello)": true, "  num\t=\n:five  ": true, "attribute_exists ( num )": true, "doc . kid . num = :two": true,
		// A comparison of size.
		"size(str) = :five": true, ":five = size(str)": true, "size(str) BETWEEN :four AND :six": true, "size(str) IN (:four, :five)": true, "size(strs) < size(str)": true,
	})
}

func functionCases() []testCase {
	return holds("function", map[string]bool{
		"attribute_exists(num)": true, "attribute_exists(gone)": false, "attribute_exists(nul)": true, "attribute_exists(blank)": true, "attribute_exists(doc.kid.num)": true, "attribute_exists(doc.kid.gone)": false, "attribute_exists(els[0])": true, "attribute_exists(els[3])": false,
		"attribute_not_exists(num)": false, "attribute_not_exists(gone)": true, "attribute_not_exists(gone.deeper)": true, "attribute_not_exists(doc.kid)": false,
		"attribute_type(str, :S)": true, "attribute_type(num, :N)": true, "attribute_type(bin, :B)": true, "attribute_type(yes, :BOOL)": true, "attribute_type(nul, :NULL)": true,
		"attribute_type(strs, :SS)": true, "attribute_type(nums, :NS)": true, "attribute_type(bins, :BS)": true, "attribute_type(els, :L)": true, "attribute_type(doc, :M)": true,
		"attribute_type(str, :N)": false, "attribute_type(gone, :S)": false, "attribute_type(els[0], :N)": true,
		"begins_with(str, :hel)": true, "begins_with(str, :ell)": false, "begins_with(str, :hello)": true, "begins_with(bin, :by)": true, "begins_with(bin, :yt)": false, "begins_with(num, :hel)": false, "begins_with(gone, :hel)": false, "begins_with(str, :by)": false,
		"contains(str, :ell)": true, "contains(str, :x)": false, "contains(bin, :yt)": true, "contains(strs, :x)": true, "contains(strs, :z)": false, "contains(nums, :one)": true, "contains(nums, :five)": false, "contains(bins, :bx)": true,
		"contains(els, :one)": true, "contains(els, :x)": true, "contains(els, :deep)": false, "contains(gone, :x)": false, "contains(doc, :x)": false, "contains(strs, :one)": false,
		"size(str) > :four": true, "size(bin) = :five": true, "size(strs) = :two": true, "size(nums) = :two": true, "size(bins) = :one": true, "size(els) > :two": true, "size(doc) > :two": true, "size(blank) < :one": true, "size(vacant) < :one": true, "size(noels) < :one": true, "size(gone) < :ten": false, "size(doc.kid) = :one": true,
		"size(num) > :one": false, "size(clef) = :three": true, // UTF-16 code units: 1 and 2
	})
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html#Expressions.OperatorsAndFunctions.Syntax
func refusedConditionCases() []testCase {
	var all []testCase
	for _, condition := range []string{
		"", " ", "num", "num =", "= :five", "num = :five AND", "AND num = :five", "num = :five OR OR num = :six", "num == :five", "num != :five", "num = 5", "num = 'x'", "(num = :five", "num = :five)", "()",
		"num = :five num = :six", "num IN ()", "num IN :five", "num BETWEEN :one", "num BETWEEN :one OR :five", "num[:one] = :one", "els[x] = :one", "els[-1] = :one", "doc..kid = :one", ".doc = :one", "num = :", "# = :five", "num = :five;",
		"dog(num)", "ATTRIBUTE_EXISTS(num)", "attribute_exists()", "attribute_exists(num, str)", "attribute_exists(:five)", "begins_with(str)", "contains(str, :x, :x)", "size(str)", "size(str, num) = :five", "num = attribute_exists(num)",
		"attribute_exists(num) = :true", "attribute_type(num, :dog)", "attribute_type(num, :five)", "begins_with(str, :five)", "num < :true", "num > :list", "num BETWEEN :true AND :true", "num BETWEEN :six AND :five", "num BETWEEN :one AND :x", "size(:five) = :five",
		"num = num", "((num = :five))", "((num)) = :five", "if_not_exists(num, :five) = :five", "SET num = :five",
	} {
		all = append(all, testCase{name: "refused condition/" + condition, keys: "id:S", run: func(x *exam) {
			x.fill(sample)
			empty := condition
			a := args{condition: condition, names: names, values: operands}
			if strings.TrimSpace(condition) == "" {
				x.refused(x.emptyCondition(empty), invalid)
				return
			}
			x.refused(x.put(sample, a).err, invalid)
		}})
	}
	return all
}

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
		all = append(all, testCase{name: "placeholder/" + name, keys: "id:S", run: func(x *exam) {
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
		testCase{name: "placeholder/a hundred operands of IN", keys: "id:S", run: func(x *exam) {
			x.fill(sample)
			x.ok(send(x, request{condition: "num IN (" + list(100) + ")", values: numbered(100)}))
			x.refused(send(x, request{condition: "num IN (" + list(101) + ")", values: numbered(101)}), invalid)
		}},
		testCase{name: "placeholder/an expression of 4 KB", keys: "id:S", run: func(x *exam) {
			x.fill(sample)
			pad := strings.Repeat(" ", 4096-len("num=:v"))
			x.ok(send(x, request{condition: "num=:v" + pad, values: m{":v": 5}}))
			x.refused(send(x, request{condition: "num=:v" + pad + " ", values: m{":v": 5}}), invalid)
		}},
		testCase{name: "placeholder/three hundred operators of a condition", keys: "id:S", run: func(x *exam) {
			x.fill(sample)
			chain := func(comparisons int) string { // each an operator, and an OR between two
				return strings.TrimSuffix(strings.Repeat("a<:v OR ", comparisons), " OR ")
			}
			x.refused(send(x, request{condition: chain(150), values: m{":v": 5}}), conditionFailed)
			x.refused(send(x, request{condition: chain(151), values: m{":v": 5}}), invalid)
		}},
		testCase{name: "placeholder/three hundred operators of an update", keys: "id:S", run: func(x *exam) {
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
	{name: "reserved words/refused in any case", keys: "id:S", run: func(x *exam) {
		x.fill(sample)
		for _, word := range []string{"status", "Status", "STATUS", "data", "owner", "ttl", "error", "name", "value", "size", "set", "abort", "zone", "url", "hash", "comment", "timestamp", "year", "counter", "users"} {
			x.refused(x.put(sample, args{condition: "attribute_not_exists(" + word + ")"}).err, invalid)
			x.refused(x.update(m{"id": "a"}, args{update: "SET " + word + " = :five", values: operands}).err, invalid)
			x.refused(x.update(m{"id": "a"}, args{update: "SET doc." + word + " = :five", values: operands}).err, invalid)
		}
	}},
	{name: "reserved words/by placeholder", keys: "id:S", run: func(x *exam) {
		x.ok(x.update(m{"id": "a"}, args{update: "SET #status = :five", names: names, values: operands}).err)
		x.stored(m{"id": "a"}, m{"id": "a", "status": 5})
	}},
	{name: "reserved words/others are free", keys: "id:S", run: func(x *exam) {
		for _, word := range []string{"id", "expiration", "fence", "attempts", "tx", "validation", "in_progress_expiration", "statuses", "a1"} {
			x.ok(x.put(m{"id": "new " + word}, args{condition: "attribute_not_exists(" + word + ")"}).err)
		}
	}},
}
