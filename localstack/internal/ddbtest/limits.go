package ddbtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const digits38 = "12345678901234567890123456789012345678"

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html#HowItWorks.DataTypes.Number
func numberCases() []testCase {
	stored := map[string]string{
		"0": "0", "-0": "0", "007": "7", "1.50": "1.5", "+1": "1", ".5": "0.5", "1e2": "100", "12E-1": "1.2", "-1.0E+1": "-10", "100": "100", "0.000": "0",
		digits38: digits38, "-" + digits38: "-" + digits38, "0." + digits38: "0." + digits38, digits38 + "000": digits38 + "000",
		"1e125": "1" + strings.Repeat("0", 125), "9." + strings.Repeat("9", 37) + "e125": strings.Repeat("9", 38) + strings.Repeat("0", 88), "1e-130": "0." + strings.Repeat("0", 129) + "1",
	}
	all := []testCase{}
	for _, text := range slices.Sorted(maps.Keys(stored)) {
		all = append(all, testCase{name: "number/" + text, keys: "id:S", run: func(x *exam) {
			x.fill(m{"id": "a", "v": n(text)})
			x.stored(m{"id": "a"}, m{"id": "a", "v": n(stored[text])})
		}})
	}
	for _, text := range []string{"", " ", "x", "1x", "1 ", " 1", "1,5", "0x10", "NaN", "Infinity", "1e", "--1", "1.2.3", "1_000", digits38 + "9", "0.1" + digits38, "1e126", "-1e126", "1e-131"} {
		all = append(all, testCase{name: "number/refused " + text, keys: "id:S", run: func(x *exam) {
			x.refused(x.put(m{"id": "a", "v": n(text)}).err, invalid)
		}})
	}
	for _, c := range []struct{ a, op, b, want string }{
		{"0.1", "+", "0.2", "0.3"}, {"1", "-", "0.9", "0.1"}, {"5", "-", "5", "0"}, {"-5", "+", "3", "-2"}, {"99", "+", "1", "100"}, {"0.5", "+", "0.5", "1"},
		{digits38, "+", "1", digits38[:37] + "9"}, {"99999999999999999999999999999999999999", "-", "1", "99999999999999999999999999999999999998"}, {"9007199254740993", "+", "0", "9007199254740993"}, {"1e60", "-", "1e60", "0"},
	} {
		all = append(all, testCase{name: fmt.Sprintf("number/%s %s %s", c.a, c.op, c.b), keys: "id:S", run: func(x *exam) {
			x.fill(m{"id": "a", "v": n(c.a)})
			x.ok(x.update(m{"id": "a"}, args{update: "SET v = v " + c.op + " :v", values: m{":v": n(c.b)}}).err)
			x.stored(m{"id": "a"}, m{"id": "a", "v": n(c.want)})
		}})
	}
	return append(all, testCase{name: "number/a sum beyond the range", keys: "id:S", run: func(x *exam) {
		large := n("9." + strings.Repeat("9", 37) + "e125")
		x.fill(m{"id": "a", "v": large})
		x.refused(x.update(m{"id": "a"}, args{update: "ADD v :v", values: m{":v": large}}).err, invalid)
	}})
}

// nested returns a text within so many lists.
func nested(levels int) any {
	v := any("deep")
	for range levels {
		v = l{v}
	}
	return v
}

var valueCases = []testCase{
	{name: "value/empty strings, bytes, lists and maps", keys: "id:S", run: func(x *exam) {
		i := m{"id": "a", "s": "", "b": []byte{}, "l": l{}, "m": m{}}
		x.fill(i)
		x.stored(m{"id": "a"}, i)
	}},
	{name: "value/sets have no order", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "ss": ss{"b", "a"}, "ns": ns{"10", "9", "1.0"}})
		x.stored(m{"id": "a"}, m{"id": "a", "ss": ss{"a", "b"}, "ns": ns{"1", "9", "10"}})
	}},
	{name: "value/refused sets", keys: "id:S", run: func(x *exam) {
		for _, v := range []any{ss{}, ns{}, bs{}, ss{"a", "a"}, ns{"1", "1.0"}, bs{[]byte("x"), []byte("x")}, ns{"x"}} {
			x.refused(x.put(m{"id": "a", "v": v}).err, invalid)
			x.refused(x.update(m{"id": "a"}, args{update: "SET v = :v", values: m{":v": v}}).err, invalid)
		}
	}},
	{name: "value/null is true", run: func(x *exam) { // architect/dynalite test/putItem.js
		x.use("id:S")
		x.refused(x.put(m{"id": "a", "v": raw{&ddbtypes.AttributeValueMemberNULL{Value: false}}}).err, invalid, "Null attribute value types must have the value of true")
	}},
	{name: "value/32 levels", keys: "id:S", run: func(x *exam) {
		x.ok(x.put(m{"id": "a", "v": nested(31)}).err)
		x.refused(x.put(m{"id": "a", "v": nested(33)}).err, invalid, "Nesting Levels have exceeded supported limits")
	}},
}

const itemLimit = 400 << 10

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html#limits-items
var sizeCases = []testCase{
	{name: "size/an item of 400 KB", keys: "id:S", run: func(x *exam) {
		longest := itemLimit - len("id") - len("a") - len("v")
		x.ok(x.put(m{"id": "a", "v": strings.Repeat("v", longest)}).err)
		x.refused(x.put(m{"id": "a", "v": strings.Repeat("v", longest+1)}).err, invalid)
		x.refused(x.put(m{"id": "a", "v": strings.Repeat("é", longest/2+1)}).err, invalid)
	}},
	{name: "size/grown over 400 KB", keys: "id:S", run: func(x *exam) {
		half := strings.Repeat("v", itemLimit/2)
		x.fill(m{"id": "a", "v": half})
		err := x.update(m{"id": "a"}, args{update: "SET w = :v", values: m{":v": half}}).err
		x.refused(err, invalid, "Item size to update has exceeded the maximum allowed size")
		x.stored(m{"id": "a"}, m{"id": "a", "v": half})
	}},
	{name: "size/many attributes", keys: "id:S", run: func(x *exam) {
		i := m{"id": "a"}
		for k := range 1000 {
			i[fmt.Sprint("attribute", k)] = k
		}
		x.fill(i)
		x.stored(m{"id": "a"}, i)
	}},
}

var keyCases = []testCase{
	{name: "key/types and sort keys are apart", keys: "id:S pos:N", run: func(x *exam) {
		x.fill(m{"id": "a", "pos": 1, "v": 1}, m{"id": "a", "pos": 2, "v": 2}, m{"id": "b", "pos": 1, "v": 3}, m{"id": "A", "pos": 1, "v": 4})
		x.stored(m{"id": "a", "pos": 1}, m{"id": "a", "pos": 1, "v": 1})
		x.stored(m{"id": "a", "pos": 2}, m{"id": "a", "pos": 2, "v": 2})
		x.stored(m{"id": "b", "pos": 1}, m{"id": "b", "pos": 1, "v": 3})
		x.stored(m{"id": "b", "pos": 2}, nil)
	}},
	{name: "key/equal numbers are one key", keys: "id:N", run: func(x *exam) {
		x.fill(m{"id": n("1.50"), "v": 1}, m{"id": n("15e-1"), "v": 2})
		x.stored(m{"id": n("1.5")}, m{"id": n("1.5"), "v": 2})
	}},
	{name: "key/bytes", keys: "id:B", run: func(x *exam) {
		x.fill(m{"id": []byte{0, 255}, "v": 1})
		x.stored(m{"id": []byte{0, 255}}, m{"id": []byte{0, 255}, "v": 1})
		x.stored(m{"id": []byte{0}}, nil)
	}},
	{name: "key/characters of every kind", keys: "id:S", run: func(x *exam) {
		for _, id := range []string{" ", "a ", "é", "e\u0301", "鍵", "🔑", "'\"`;--", "\x00", "\n", "a#b|c/d", "<&>"} {
			x.fill(m{"id": id, "v": id})
			x.stored(m{"id": id}, m{"id": id, "v": id})
		}
	}},
	{name: "key/refused in a key", keys: "id:S pos:N", run: func(x *exam) {
		for _, key := range []m{
			{}, {"id": "a"}, {"pos": 1}, {"id": "a", "pos": "1"}, {"id": 1, "pos": 1}, {"id": "a", "pos": 1, "more": 1}, {"id": "a", "other": 1}, {"id": "", "pos": 1}, {"id": nil, "pos": 1}, {"id": ss{"a"}, "pos": 1},
		} {
			_, err := x.client().GetItem(x.ctx, &dynamodb.GetItemInput{TableName: &x.table, Key: attributes(key)})
			x.refused(err, invalid)
			x.refused(x.update(key, args{update: "SET v = :v", values: m{":v": 1}}).err, invalid)
			x.refused(x.remove(key).err, invalid)
		}
	}},
	{name: "key/refused in an item", keys: "id:S pos:N", run: func(x *exam) {
		for _, i := range []m{{}, {"id": "a"}, {"pos": 1}, {"id": "a", "pos": "1"}, {"id": 1, "pos": 1}, {"id": "", "pos": 1}, {"id": nil, "pos": 1}} {
			x.refused(x.put(i).err, invalid)
		}
	}},
	{name: "key/empty bytes refused", keys: "id:B", run: func(x *exam) {
		x.refused(x.put(m{"id": []byte{}}).err, invalid)
	}},
	{name: "key/a partition key of 2,048 bytes", keys: "id:S", run: func(x *exam) {
		x.ok(x.put(m{"id": strings.Repeat("k", 2048)}).err)
		x.refused(x.put(m{"id": strings.Repeat("k", 2049)}).err, invalid)
		x.refused(x.put(m{"id": strings.Repeat("é", 1025)}).err, invalid) // bytes, not characters
	}},
	{name: "key/a sort key of 1,024 bytes", keys: "id:S pos:S", run: func(x *exam) {
		x.ok(x.put(m{"id": "a", "pos": strings.Repeat("k", 1024)}).err)
		x.refused(x.put(m{"id": "a", "pos": strings.Repeat("k", 1025)}).err, invalid)
	}},
	{name: "key/not changed by an update", keys: "id:S pos:N", run: func(x *exam) {
		x.fill(m{"id": "a", "pos": 1})
		for _, update := range []string{"SET pos = :v", "REMOVE pos", "ADD pos :v", "SET id = :v"} {
			x.refused(x.update(m{"id": "a", "pos": 1}, args{update: update, values: m{":v": 1}}).err, invalid)
		}
	}},
}
