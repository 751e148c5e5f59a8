package expr

import (
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// decode reads an item written with single quotes.
func decode(t testing.TB, s string) attr.Map {
	t.Helper()
	m, err := attr.DecodeMap([]byte(strings.ReplaceAll(s, "'", `"`)))
	if err != nil {
		t.Fatalf("item %s: %v", s, err)
	}
	return m
}

const sample = `{'id':{'S':'a'},'n':{'N':'5'},'s':{'S':'hello'},'b':{'B':'aGVsbG8='},'t':{'BOOL':true},'z':{'NULL':true},
	'l':{'L':[{'N':'1'},{'M':{'k':{'S':'v'}}}]},'m':{'M':{'x':{'N':'5'}}},'ss':{'SS':['p','q']},'ns':{'NS':['1','2']}}`

const sampleValues = `{':five':{'N':'5.0'},':six':{'N':'6'},':hell':{'S':'hell'},':str':{'S':'5'},':bin':{'B':'aGVs'},':S':{'S':'S'},':L':{'S':'L'},
	':qp':{'SS':['q','p']},':one':{'N':'1'},':two':{'N':'2'},':p':{'S':'p'},':k':{'M':{'k':{'S':'v'}}},':true':{'BOOL':true},':null':{'NULL':true}}`

func TestCondition(t *testing.T) {
	t.Parallel()
	item := decode(t, sample)
	values := decode(t, sampleValues)
	for _, tt := range []struct {
		src  string
		want bool
	}{
		{"n = :five", true}, {":five = n", true}, {"n <> :five", false}, {"n < :six", true}, {"n >= :six", false}, {"n <= :five", true}, {"n > :one", true},
		{"n = :str", false}, {"n <> :str", true}, {"n < :str", false}, {"n > :str", false}, // types differ
		{"gone = :five", false}, {"gone <> :five", true}, {"gone < :five", false}, {"gone = alsogone", false}, {"gone <> alsogone", true}, {"NOT gone < :five", true},
		{"ss = :qp", true}, {"t = :true", true}, {"z = :null", true}, {"z <> :true", true},
		{"m.x = n", true}, {"l[0] = :one", true}, {"l[1].k = :p", false}, {"l[1] = :k", true}, {"l[2] = :one", false}, {"m[0] = :one", false}, {"l.x = :one", false}, {"s.x = :one", false},
		{"n BETWEEN :five AND :six", true}, {"n between :six and :six", false}, {"gone BETWEEN :five AND :six", false}, {"n BETWEEN l[0] AND :six AND s = :hell", false},
		{"n IN (:one, :five)", true}, {"n in (:one,:str)", false}, {"gone IN (gonetoo)", false},
		{"attribute_exists(z)", true}, {"attribute_exists(m.x)", true}, {"attribute_exists(m.y)", false}, {"attribute_not_exists(id)", false}, {"attribute_not_exists ( gone )", true},
		{"attribute_type(s, :S)", true}, {"attribute_type(l, :L)", true}, {"attribute_type(n, :S)", false}, {"attribute_type(gone, :S)", false},
		{"begins_with(s, :hell)", true}, {"begins_with(b, :bin)", true}, {"begins_with(n, :hell)", false}, {"begins_with(gone, :hell)", false},
		{"contains(s, :hell)", true}, {"contains(ss, :p)", true}, {"contains(ns, :two)", true}, {"contains(l, :k)", true}, {"contains(s, :five)", false}, {"contains(ns, :str)", false}, {"contains(gone, :p)", false},
		{"size(s) = n", true}, {"size(l) = :two", true}, {"size(ss) >= :two", true}, {"size(m) = :one", true}, {"size(b) < :six", true}, {"size(n) = :one", false}, {"size(gone) < :six", false}, {"size(s) = :str", false},
		// NOT binds before AND, AND before OR.
		{"n = :five OR n = :one AND n = :six", true}, {"(n = :five OR n = :one) AND n = :six", false},
		{"NOT n = :six AND n = :five", true}, {"NOT (n = :six AND n = :five)", true}, {"NOT n = :five OR n = :five", true}, {"NOT NOT n = :five", true},
		{"(n) = (:five)", true}, {"((n) = :five)", true}, {"NOT (n) < :five AND (s) IN ((:p), (:hell))", false}, {"(size(s)) BETWEEN (:five) AND (:six)", true}, {"contains((ss), (:p))", true}, {"(n = :one OR (n) = :five)", true},
		{"n = :one AND n = :six OR n = :five", true}, {"n = :six AND (n = :one OR n = :five)", false}, {"nOt n = :one aNd n = :five oR n = :six", true},
	} {
		c, err := ParseCondition(tt.src)
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		e := &Env{Values: values}
		if err := c.Bind(e); err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if got := c.Eval(e, item); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.src, got, tt.want)
		}
	}
}

func TestConditionWithoutItem(t *testing.T) {
	t.Parallel()
	e := &Env{Values: decode(t, sampleValues)}
	for src, want := range map[string]bool{"attribute_not_exists(id)": true, "attribute_exists(id)": false, "n = :one": false, "n <> :one": true} {
		c, err := ParseCondition(src)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Eval(e, nil); got != want {
			t.Errorf("%s of no item: got %t, want %t", src, got, want)
		}
	}
}

func TestConditionNames(t *testing.T) {
	t.Parallel()
	item := decode(t, `{'a.b':{'N':'1'},'status':{'M':{'or':{'N':'2'}}}}`)
	e := &Env{Names: map[string]string{"#dot": "a.b", "#s": "status", "#o": "or"}, Values: decode(t, sampleValues)}
	c, err := ParseCondition("#dot = :one AND #s.#o = :two")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Bind(e); err != nil {
		t.Fatal(err)
	}
	if !c.Eval(e, item) {
		t.Error("a placeholder is one name, dots and all, and may stand for a reserved word")
	}
}
