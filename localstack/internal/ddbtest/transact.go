package ddbtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The functions below return actions of a transaction on the case's table.

func (x *exam) txPut(i m, optional ...args) ddbtypes.TransactWriteItem {
	a := only(optional)
	w := &ddbtypes.Put{TableName: aws.String(x.table), Item: attributes(i), ReturnValuesOnConditionCheckFailure: a.onFailure}
	w.ConditionExpression, _, w.ExpressionAttributeNames, w.ExpressionAttributeValues = a.sent()
	return ddbtypes.TransactWriteItem{Put: w}
}

func (x *exam) txUpdate(key m, a args) ddbtypes.TransactWriteItem {
	w := &ddbtypes.Update{TableName: aws.String(x.table), Key: attributes(key), ReturnValuesOnConditionCheckFailure: a.onFailure}
	w.ConditionExpression, w.UpdateExpression, w.ExpressionAttributeNames, w.ExpressionAttributeValues = a.sent()
	return ddbtypes.TransactWriteItem{Update: w}
}

func (x *exam) txDelete(key m, optional ...args) ddbtypes.TransactWriteItem {
	a := only(optional)
	w := &ddbtypes.Delete{TableName: aws.String(x.table), Key: attributes(key), ReturnValuesOnConditionCheckFailure: a.onFailure}
	w.ConditionExpression, _, w.ExpressionAttributeNames, w.ExpressionAttributeValues = a.sent()
	return ddbtypes.TransactWriteItem{Delete: w}
}

func (x *exam) txCheck(key m, a args) ddbtypes.TransactWriteItem {
	w := &ddbtypes.ConditionCheck{TableName: aws.String(x.table), Key: attributes(key), ReturnValuesOnConditionCheckFailure: a.onFailure}
	w.ConditionExpression, _, w.ExpressionAttributeNames, w.ExpressionAttributeValues = a.sent()
	return ddbtypes.TransactWriteItem{ConditionCheck: w}
}

func (x *exam) transact(actions ...ddbtypes.TransactWriteItem) error {
	return x.transactToken("", actions...)
}

func (x *exam) transactToken(token string, actions ...ddbtypes.TransactWriteItem) error {
	_, err := x.client().TransactWriteItems(x.ctx, &dynamodb.TransactWriteItemsInput{ClientRequestToken: optional(token), TransactItems: actions})
	return err
}

const cancelled = "TransactionCanceledException"

// reasons expects a cancelled transaction with these reasons, one for each action: the code, a part of the message, and the
// item.
func (x *exam) reasons(err error, want ...reason) {
	x.refused(err, cancelled)
	e, ok := errors.AsType[*ddbtypes.TransactionCanceledException](err)
	if !ok {
		x.fatalf("the error is not typed: %v", err)
	}
	equal(x, "reasons", len(e.CancellationReasons), len(want))
	for i, r := range e.CancellationReasons {
		code := aws.ToString(r.Code)
		equal(x, fmt.Sprint("code of reason ", i), code, want[i].code)
		if text := aws.ToString(r.Message); !strings.Contains(text, want[i].text) || code == "None" && text != "" {
			x.fatalf("message of reason %d: got %q, want %q", i, text, want[i].text)
		}
		x.same(fmt.Sprint("item of reason ", i), r.Item, want[i].item)
	}
}

type reason struct {
	code, text string
	item       m
}

var (
	none   = reason{code: "None"}
	unmet  = reason{code: "ConditionalCheckFailed", text: "The conditional request failed"}
	always = args{condition: "attribute_exists(id) OR attribute_not_exists(id)"}
	never  = args{condition: "attribute_exists(id) AND attribute_not_exists(id)"}
)

var transactWriteCases = []testCase{
	{name: "transaction/all four actions", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "updated", "v": 1}, m{"id": "deleted"}, m{"id": "checked", "v": 1})
		x.ok(x.transact(
			x.txPut(m{"id": "put"}, args{condition: isNew}),
			x.txUpdate(m{"id": "updated"}, args{update: "ADD v :v", condition: "v = :v", values: m{":v": 1}}),
			x.txDelete(m{"id": "deleted"}),
			x.txCheck(m{"id": "checked"}, args{condition: "v = :v", values: m{":v": 1}}),
		))
		x.stored(m{"id": "put"}, m{"id": "put"})
		x.stored(m{"id": "updated"}, m{"id": "updated", "v": 2})
		x.stored(m{"id": "deleted"}, nil)
		x.stored(m{"id": "checked"}, m{"id": "checked", "v": 1})
	}},
	{name: "transaction/all or nothing", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "b", "v": 1})
		err := x.transact(x.txPut(m{"id": "a"}), x.txUpdate(m{"id": "b"}, args{update: "ADD v :v", values: m{":v": 1}}), x.txPut(m{"id": "c"}, never))
		x.reasons(err, none, none, unmet)
		x.stored(m{"id": "a"}, nil)
		x.stored(m{"id": "b"}, m{"id": "b", "v": 1})
	}},
	{name: "transaction/two tables", run: func(x *exam) {
		one := x.use("id:S")
		first := x.txPut(m{"id": "a"})
		x.use("id:S")
		x.ok(x.transact(first, x.txPut(m{"id": "a"})))
		x.stored(m{"id": "a"}, m{"id": "a"})
		x.table = one
		x.stored(m{"id": "a"}, m{"id": "a"})
	}},
	{name: "transaction/conditions are on the items before it", keys: "id:S", run: func(x *exam) {
		x.reasons(x.transact(x.txPut(m{"id": "a"}), x.txCheck(m{"id": "b"}, args{condition: "attribute_exists(id)"})), none, unmet)
		x.ok(x.transact(x.txPut(m{"id": "a"}), x.txPut(m{"id": "b"}, args{condition: isNew})))
	}},
	{name: "transaction/one item twice", keys: "id:S", run: func(x *exam) {
		for _, second := range []ddbtypes.TransactWriteItem{x.txPut(m{"id": "a", "v": 1}), x.txDelete(m{"id": "a"}), x.txCheck(m{"id": "a"}, always), x.txUpdate(m{"id": "a"}, args{update: "SET v = :v", values: m{":v": 1}})} {
			x.refused(x.transact(x.txPut(m{"id": "a"}), second), invalid)
		}
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "transaction/100 actions", keys: "id:S", run: func(x *exam) {
		actions := func(n int) []ddbtypes.TransactWriteItem {
			var all []ddbtypes.TransactWriteItem
			for i := range n {
				all = append(all, x.txPut(m{"id": fmt.Sprint(i)}))
			}
			return all
		}
		x.ok(x.transact(actions(100)...))
		x.stored(m{"id": "99"}, m{"id": "99"})
		x.refused(x.transact(actions(101)...), invalid)
	}},
	{name: "transaction/refused as a whole", keys: "id:S", run: func(x *exam) {
		good := x.txPut(m{"id": "good"})
		both := x.txPut(m{"id": "x"})
		both.Delete = x.txDelete(m{"id": "x"}).Delete
		for what, actions := range map[string][]ddbtypes.TransactWriteItem{
			"none": {}, "an action that is none": {good, {}}, "an action that is two": {good, both},
			"a bad condition":      {good, x.txPut(m{"id": "x"}, args{condition: "="})},
			"a name undefined":     {good, x.txPut(m{"id": "x"}, args{condition: "#undefined = #undefined"})},
			"a bad update":         {good, x.txUpdate(m{"id": "x"}, args{update: "HELLO"})},
			"an item without key":  {good, x.txPut(m{"v": 1})},
			"a key of wrong type":  {good, x.txDelete(m{"id": 1})},
			"a key that is longer": {good, x.txDelete(m{"id": "x", "v": 1})},
		} {
			err := x.transact(actions...)
			if err == nil {
				x.fatalf("%s: got success, want it refused", what)
			}
			if strings.HasPrefix(what, "a key") || strings.HasPrefix(what, "an item") {
				continue // as a request that is invalid, or as a reason to cancel: AWS documents both
			}
			x.refused(err, invalid)
		}
		x.stored(m{"id": "good"}, nil)
	}},
	// nubo-db/dynamodb-conformance, error-messages/transactWriteItems.test.ts: no reason to cancel.
	{name: "transaction/empty keys", run: func(x *exam) {
		x.useIndexed(everything)
		const key = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"
		for _, action := range []ddbtypes.TransactWriteItem{
			x.txPut(m{"id": ""}), x.txUpdate(m{"id": ""}, args{update: "SET v = :v", values: m{":v": 1}}), x.txDelete(m{"id": ""}), x.txCheck(m{"id": ""}, args{condition: "attribute_not_exists(id)"}),
		} {
			x.refused(x.transact(action), invalid, key)
		}
		x.refused(x.transact(x.txPut(m{"id": "a", "owner": "", "pos": 1})), invalid, "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "+
			"The AttributeValue for a key attribute cannot contain an empty string value. IndexName: by_owner, IndexKey: owner")
		empty := args{update: "SET #o = :v", names: map[string]string{"#o": "owner"}, values: m{":v": ""}}
		const updated = "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty string value."
		x.refused(x.transact(x.txUpdate(m{"id": "a"}, empty)), invalid, updated)
		x.refused(x.update(m{"id": "a"}, empty).err, invalid, updated)
	}},
	{name: "transaction/no table", keys: "id:S", run: func(x *exam) {
		good := x.txPut(m{"id": "good"})
		here := x.table
		x.table = x.newName()
		x.refused(x.transact(good, x.txPut(m{"id": "x"})), notFound)
		x.table = here
		x.stored(m{"id": "good"}, nil)
	}},
	{name: "transaction/4 MB", keys: "id:S", run: func(x *exam) {
		var all []ddbtypes.TransactWriteItem
		for i := range 11 {
			all = append(all, x.txPut(m{"id": fmt.Sprint(i), "v": strings.Repeat("v", 390<<10)}))
		}
		x.ok(x.transact(all[:10]...))
		x.refused(x.transact(all...), invalid)
	}},
}

// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
var reasonCases = []testCase{
	{name: "reasons/with the item where it was asked for", keys: "id:S", run: func(x *exam) {
		for _, id := range []string{"a", "b", "c", "d"} {
			x.fill(m{"id": id, "v": 1})
		}
		want := args{condition: never.condition, onFailure: allOld}
		upd := want
		upd.update = "REMOVE v"
		withItem := func(id string) reason { r := unmet; r.item = m{"id": id, "v": 1}; return r }
		x.reasons(x.transact(
			x.txPut(m{"id": "a"}, want), x.txUpdate(m{"id": "b"}, upd), x.txDelete(m{"id": "c"}, want), x.txCheck(m{"id": "d"}, want),
			x.txPut(m{"id": "none"}, args{condition: "attribute_exists(id)", onFailure: allOld}), x.txDelete(m{"id": "e"}),
		), withItem("a"), withItem("b"), withItem("c"), withItem("d"), unmet, none)
		x.reasons(x.transact(x.txPut(m{"id": "a"}, never)), unmet)
	}},
	{name: "reasons/an update that the item does not allow", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "str": "x", "num": 1})
		for update, text := range map[string]string{
			"SET v = gone":       "The provided expression refers to an attribute that does not exist in the item",
			"SET str.kid = :one": "The document path provided in the update expression is invalid for update",
			"ADD str :one":       "An operand in the update expression has an incorrect data type",
		} {
			err := x.transact(x.txPut(m{"id": "b"}), x.txUpdate(m{"id": "a"}, args{update: update, values: m{":one": 1}}))
			x.reasons(err, none, reason{code: "ValidationError", text: text})
		}
		x.stored(m{"id": "b"}, nil)
	}},
	{name: "reasons/an item grown over 400 KB", keys: "id:S", run: func(x *exam) {
		half := strings.Repeat("v", itemLimit/2)
		x.fill(m{"id": "a", "v": half})
		err := x.transact(x.txUpdate(m{"id": "a"}, args{update: "SET w = :v", values: m{":v": half}}))
		x.reasons(err, reason{code: "ValidationError", text: "Item size to update has exceeded the maximum allowed size"})
	}},
}

var tokenCases = []testCase{
	{name: "token/makes a repetition do nothing, though its condition would fail now", keys: "id:S", run: func(x *exam) {
		add := func() error {
			return x.transactToken("token-1", x.txUpdate(m{"id": "a"}, args{update: "ADD v :v SET w = :w, y = :w", condition: isNew, values: m{":v": 1, ":w": "x"}}))
		}
		for range 3 {
			x.ok(add())
		}
		x.stored(m{"id": "a"}, m{"id": "a", "v": 1, "w": "x", "y": "x"})
		x.ok(x.remove(m{"id": "a"}).err)
		x.ok(add())
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "token/with another transaction", keys: "id:S", run: func(x *exam) {
		x.ok(x.transactToken("token-3", x.txPut(m{"id": "a", "v": 1})))
		x.refused(x.transactToken("token-3", x.txPut(m{"id": "a", "v": 2})), "IdempotentParameterMismatchException")
		x.refused(x.transactToken("token-3", x.txPut(m{"id": "a", "v": 1}), x.txPut(m{"id": "b"})), "IdempotentParameterMismatchException")
		x.stored(m{"id": "a"}, m{"id": "a", "v": 1})
	}},
	{name: "token/others are others", keys: "id:S", run: func(x *exam) {
		for _, token := range []string{"token-4", "token-5", "", ""} {
			x.ok(x.transactToken(token, x.txUpdate(m{"id": "a"}, args{update: "ADD v :v", values: m{":v": 1}})))
		}
		x.stored(m{"id": "a"}, m{"id": "a", "v": 4})
	}},
	{name: "token/of a cancelled transaction is free", keys: "id:S", run: func(x *exam) {
		try := func() error {
			return x.transactToken("token-6", x.txPut(m{"id": "a", "w": 1}, args{condition: "v = :v", values: m{":v": 1}}))
		}
		x.refused(try(), cancelled)
		x.fill(m{"id": "a", "v": 1})
		x.ok(try())
		x.stored(m{"id": "a"}, m{"id": "a", "w": 1})
	}},
	{name: "token/over 36 characters", keys: "id:S", run: func(x *exam) {
		x.ok(x.transactToken(strings.Repeat("t", 36), x.txPut(m{"id": "a"})))
		x.refused(x.transactToken(strings.Repeat("t", 37), x.txPut(m{"id": "a"})), invalid)
	}},
	{name: "token/for ten minutes", minutes: true, keys: "id:S", run: func(x *exam) {
		add := func() {
			x.ok(x.transactToken("token-7", x.txUpdate(m{"id": "a"}, args{update: "ADD v :v", values: m{":v": 1}})))
		}
		add()
		x.advance(10*time.Minute - time.Second)
		add()
		x.stored(m{"id": "a"}, m{"id": "a", "v": 1})
		x.advance(2 * time.Second)
		add()
		x.stored(m{"id": "a"}, m{"id": "a", "v": 2})
	}},
	{name: "token/for ten minutes beside others", minutes: true, keys: "id:S", run: func(x *exam) {
		add := func(token string) {
			x.ok(x.transactToken(token, x.txUpdate(m{"id": token}, args{update: "ADD v :v", values: m{":v": 1}})))
		}
		for i := range 13 { // minutes
			add(fmt.Sprint("token-", i))
			for again := max(0, i-9); again < i; again++ {
				add(fmt.Sprint("token-", again))
			}
			for made := range i {
				x.stored(m{"id": fmt.Sprint("token-", made)}, m{"id": fmt.Sprint("token-", made), "v": 1})
			}
			x.advance(time.Minute)
		}
	}},
}
