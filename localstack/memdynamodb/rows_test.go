package memdynamodb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// TestRows: after any changes the rows of a table and of an index are the items, in one order, from any place on in both directions.
func TestRows(t *testing.T) {
	t.Parallel()
	table := schema{partition: "id", sort: "pos", types: map[string]string{"id": "S", "pos": "N"}}
	for name, r := range map[string]*rows{
		"table": {keys: table},
		"index": {keys: schema{partition: "of", types: map[string]string{"of": "S"}}, table: table},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			draw := rand.New(rand.NewPCG(1, 2))
			model := map[string]attr.Map{}
			for range 20_000 {
				id, pos := strconv.Itoa(draw.IntN(3)), strconv.Itoa(draw.IntN(2000))
				item := attr.Map(nil).With("id", attr.String(id)).With("pos", attr.Number(pos)).With("of", attr.String("one"))
				if draw.IntN(3) == 0 {
					r.remove(r.placeOf(item))
					delete(model, id+"/"+pos)
				} else {
					item = item.With("v", attr.String(fmt.Sprint(draw.Int())))
					r.put(item)
					model[id+"/"+pos] = item
				}
			}
			var all []attr.Map
			bytes := 0
			for e := range r.all() {
				if !attr.Equal(e.item, model[string(e.item.Get("id").(attr.String))+"/"+string(e.item.Get("pos").(attr.Number))]) {
					t.Fatalf("%v is not the item that was put last", e.item)
				}
				if n := len(all); n > 0 && r.placeOf(e.item)(&row{hashOf(keyText(all[n-1].Get(r.keys.partition))), all[n-1]}) >= 0 {
					t.Fatalf("%v comes behind %v", e.item, all[n-1])
				}
				all = append(all, e.item)
				bytes += e.item.Size()
			}
			if len(all) != len(model) || r.count != len(all) || r.bytes != bytes {
				t.Fatalf("%d items of %d, counted %d of %d bytes, want %d", len(all), len(model), r.count, r.bytes, bytes)
			}
			for i := 0; i < len(all); i += 97 {
				var up, down []attr.Map
				for e := range r.from(r.seek(r.placeOf(all[i]).behind())) {
					up = append(up, e.item)
				}
				for e := range r.before(r.seek(r.placeOf(all[i]))) {
					down = append(down, e.item)
				}
				slices.Reverse(down)
				if same := func(a, b attr.Map) bool { return attr.Equal(a, b) }; !slices.EqualFunc(up, all[i+1:], same) || !slices.EqualFunc(down, all[:i], same) {
					t.Fatalf("%d rows are behind row %d of %d, and %d before it", len(up), i, len(all), len(down))
				}
			}
		})
	}
}

// TestTablesLockApart: a call of a table does not wait for a call of another.
func TestTablesLockApart(t *testing.T) {
	t.Parallel()
	s := New()
	defer s.Close()
	for _, name := range []string{"one", "two"} {
		in := &createTableInput{TableName: name, BillingMode: onDemand, AttributeDefinitions: []attributeDefinition{{"id", "S"}}, KeySchema: []keyElement{{"id", "HASH"}}}
		if _, err := s.createTable(nil, in); err != nil {
			t.Fatal(err)
		}
	}
	busy, err := s.table("one")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.mu.Unlock()
	in := &writeInput{changeInput: changeInput{TableName: "two", Item: attr.Map(nil).With("id", attr.String("a"))}}
	if _, err := s.putItem(&call{}, in); err != nil { // waits forever if there is one lock for all
		t.Error(err)
	}
	if _, err := s.listTables(nil, &listTablesInput{}); err != nil {
		t.Error(err)
	}
}
