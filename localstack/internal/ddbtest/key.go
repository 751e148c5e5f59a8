package ddbtest

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var keyCases = []testCase{
	{name: "key/types and sort keys are apart", run: func(x *exam) {
		x.use("id:S", "pos:N")
		x.fill(m{"id": "a", "pos": 1, "v": 1}, m{"id": "a", "pos": 2, "v": 2}, m{"id": "b", "pos": 1, "v": 3}, m{"id": "A", "pos": 1, "v": 4})
		x.stored(m{"id": "a", "pos": 1}, m{"id": "a", "pos": 1, "v": 1})
		x.stored(m{"id": "a", "pos": 2}, m{"id": "a", "pos": 2, "v": 2})
		x.stored(m{"id": "b", "pos": 1}, m{"id": "b", "pos": 1, "v": 3})
		x.stored(m{"id": "b", "pos": 2}, nil)
	}},
	{name: "key/equal numbers are one key", run: func(x *exam) {
		x.use("id:N")
		x.fill(m{"id": n("1.50"), "v": 1}, m{"id": n("15e-1"), "v": 2})
		x.stored(m{"id": n("1.5")}, m{"id": n("1.5"), "v": 2})
	}},
	{name: "key/bytes", run: func(x *exam) {
		x.use("id:B")
		x.fill(m{"id": []byte{0, 255}, "v": 1})
		x.stored(m{"id": []byte{0, 255}}, m{"id": []byte{0, 255}, "v": 1})
		x.stored(m{"id": []byte{0}}, nil)
	}},
	{name: "key/characters of every kind", run: func(x *exam) {
		x.use("id:S")
		for _, id := range []string{" ", "a ", "é", "e\u0301", "鍵", "🔑", "'\"`;--", "\x00", "\n", "a#b|c/d", "<&>"} {
			x.fill(m{"id": id, "v": id})
			x.stored(m{"id": id}, m{"id": id, "v": id})
		}
	}},
	{name: "key/refused in a key", run: func(x *exam) {
		x.use("id:S", "pos:N")
		for _, key := range []m{
			{}, {"id": "a"}, {"pos": 1}, {"id": "a", "pos": "1"}, {"id": 1, "pos": 1}, {"id": "a", "pos": 1, "more": 1}, {"id": "a", "other": 1}, {"id": "", "pos": 1}, {"id": nil, "pos": 1}, {"id": ss{"a"}, "pos": 1},
		} {
			_, err := x.client().GetItem(x.ctx, &dynamodb.GetItemInput{TableName: &x.table, Key: attributes(key)})
			x.refused(err, invalid)
			x.refused(x.update(key, args{update: "SET v = :v", values: m{":v": 1}}).err, invalid)
			x.refused(x.remove(key).err, invalid)
		}
	}},
	{name: "key/refused in an item", run: func(x *exam) {
		x.use("id:S", "pos:N")
		for _, i := range []m{{}, {"id": "a"}, {"pos": 1}, {"id": "a", "pos": "1"}, {"id": 1, "pos": 1}, {"id": "", "pos": 1}, {"id": nil, "pos": 1}} {
			x.refused(x.put(i).err, invalid)
		}
	}},
	{name: "key/empty bytes refused", run: func(x *exam) {
		x.use("id:B")
		x.refused(x.put(m{"id": []byte{}}).err, invalid)
	}},
	{name: "key/a partition key of 2,048 bytes", run: func(x *exam) {
		x.use("id:S")
		x.ok(x.put(m{"id": strings.Repeat("k", 2048)}).err)
		x.refused(x.put(m{"id": strings.Repeat("k", 2049)}).err, invalid)
		x.refused(x.put(m{"id": strings.Repeat("é", 1025)}).err, invalid) // bytes, not characters
	}},
	{name: "key/a sort key of 1,024 bytes", run: func(x *exam) {
		x.use("id:S", "pos:S")
		x.ok(x.put(m{"id": "a", "pos": strings.Repeat("k", 1024)}).err)
		x.refused(x.put(m{"id": "a", "pos": strings.Repeat("k", 1025)}).err, invalid)
	}},
	{name: "key/not changed by an update", run: func(x *exam) {
		x.use("id:S", "pos:N")
		x.fill(m{"id": "a", "pos": 1})
		for _, update := range []string{"SET pos = :v", "REMOVE pos", "ADD pos :v", "SET id = :v"} {
			x.refused(x.update(m{"id": "a", "pos": 1}, args{update: update, values: m{":v": 1}}).err, invalid)
		}
	}},
}
