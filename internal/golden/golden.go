// Package golden keeps, for tests, what each version wrote: testdata/golden/VERSION/NAME in the package's folder. Users' tables
// and queues hold it when they update, so a version's files are never changed once it is released.
package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

const folder = "testdata/golden"

var update = flag.String("update", "", "write golden files of this `version`, such as v0.2.0")

// Check compares value, as JSON, with the file of the newest version that has one. A difference means that users' data changes
// its form: with -update VERSION the new form is written beside the old ones, which Each goes on to read.
func Check(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update != "" {
		write(t, name, got)
	}
	versions := versionsOf(t, name)
	if len(versions) == 0 {
		t.Fatalf("no version has a golden %s: write it with -update VERSION", name)
	}
	if err := compare(name, versions[len(versions)-1], got); err != nil {
		t.Error(err)
	}
}

func compare(name, newest string, got []byte) error {
	want, err := os.ReadFile(filepath.Join(folder, newest, name))
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s differs from that of %s. If that is meant, run this test with -update NEXT-VERSION, and keep the old one readable.\ngot\n%s\nwant\n%s",
			name, newest, got, want)
	}
	return err
}

// Each calls f with the file of each version that has one, decoded into a T.
func Each[T any](t *testing.T, name string, f func(t *testing.T, value T)) {
	t.Helper()
	versions := versionsOf(t, name)
	if len(versions) == 0 {
		t.Fatalf("no version has a golden %s", name)
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, version, name))
			if err != nil {
				t.Fatal(err)
			}
			var value T
			if err := json.Unmarshal(text, &value); err != nil {
				t.Fatalf("golden %s of %s: %v", name, version, err)
			}
			f(t, value)
		})
	}
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if _, ok := parse(*update); !ok {
		t.Fatalf("-update %s: want a version such as v0.2.0", *update)
	}
	name = filepath.Join(folder, *update, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// versionsOf returns the versions that have a file name, in order.
func versionsOf(t *testing.T, name string) (versions []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		version := filepath.Base(filepath.Dir(file))
		if _, ok := parse(version); !ok {
			t.Fatalf("%s: its folder is no version such as v0.2.0", file)
		}
		versions = append(versions, version)
	}
	slices.SortFunc(versions, func(a, b string) int {
		x, _ := parse(a)
		y, _ := parse(b)
		return slices.Compare(x[:], y[:])
	})
	return versions
}

var versionText = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

func parse(version string) (numbers [3]int, ok bool) {
	if !versionText.MatchString(version) {
		return numbers, false
	}
	_, err := fmt.Sscanf(version, "v%d.%d.%d", &numbers[0], &numbers[1], &numbers[2])
	return numbers, err == nil
}
