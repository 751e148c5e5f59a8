package shell

import "testing"

// The words of a command are those that a shell reads.
func TestWord(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"--all": "--all", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
		"billing#o|1": "'billing#o|1'"} {
		if got := Word(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
