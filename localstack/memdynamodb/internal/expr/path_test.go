package expr

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProject(t *testing.T) {
	t.Parallel()
	item := decode(t, `{'a':{'M':{'b':{'N':'1'},'c':{'L':[{'N':'0'},{'N':'1'},{'M':{'x':{'N':'2'},'y':{'N':'3'}}}]}}},'d':{'S':'x'}}`)
	for src, want := range map[string]string{
		"d":                  `{'d':{'S':'x'}}`,
		"a.b, d":             `{'a':{'M':{'b':{'N':'1'}}},'d':{'S':'x'}}`,
		"a.c[2].x, a.c[0]":   `{'a':{'M':{'c':{'L':[{'N':'0'},{'M':{'x':{'N':'2'}}}]}}}}`,
		"gone, a.gone, d[0]": `{}`,
	} {
		p, err := ParseProjection(src)
		if err != nil {
			t.Fatal(err)
		}
		paths, err := p.Bind(&Env{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(appendMap(decode(t, want))), string(appendMap(Project(paths, item)))); diff != "" {
			t.Errorf("%s: %s", src, diff)
		}
	}
	p, err := ParseProjection("a, a.b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Bind(&Env{}); err == nil {
		t.Error("overlapping paths are accepted")
	}
}
