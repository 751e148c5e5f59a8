package golden

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

// Every version is read, in the order of versions and not of their names: the newest is what Check compares with.
func TestVersions(t *testing.T) {
	t.Chdir(t.TempDir())
	for version, text := range map[string]string{"v0.9.0": "9", "v0.10.0": "10", "v0.9.12": "912"} {
		name := filepath.Join(folder, version, "n.json")
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, []byte(text+"\n"), 0o644))
	}
	var read []int
	Each(t, "n.json", func(_ *testing.T, n int) { read = append(read, n) })
	if !slices.Equal(read, []int{9, 912, 10}) {
		t.Errorf("read %v, want all in the order of versions", read)
	}
	Check(t, "n.json", 10)
	if compare("n.json", "v0.10.0", []byte("11\n")) == nil {
		t.Error("another value than the golden one: got no error")
	}
}
