package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var licenceRow = regexp.MustCompile(`(?m)^\| (\S+) \| (v\d\S*) \| \S+ \|$`)

// The list has each version that is linked, and no other.
func TestLicencesAreCurrent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, licencesFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range published(t, repository) {
		listed := make(map[string]bool) // by library and version
		for _, row := range licenceRow.FindAllStringSubmatch(section(string(text), m.path), -1) {
			listed[row[1]+" "+row[2]] = false
		}
		for _, linked := range linkedModules(t, m) {
			path, version, _ := strings.Cut(linked, " ")
			found := false
			for row := range listed {
				library, v, _ := strings.Cut(row, " ")
				if v == version && (library == path || strings.HasPrefix(library, path+"/")) {
					listed[row], found = true, true
				}
			}
			if !found {
				t.Errorf("%s: %s is not in %s: run make licences", m.path, linked, licencesFile)
			}
		}
		for row, linked := range listed {
			if !linked {
				t.Errorf("%s: %s in %s is not linked: run make licences", m.path, row, licencesFile)
			}
		}
	}
}

// linkedModules returns path and version of each module, other than ours, that m's packages link.
func linkedModules(t *testing.T, m module) (linked []string) {
	t.Helper()
	packages, err := publicPackages(repository, m)
	if err != nil {
		t.Fatal(err)
	}
	format := `{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}`
	args := append([]string{"list", "-deps", "-f", format}, packages...)
	list, err := output(onLinux(goCommand(filepath.Join(repository, m.dir), args...)))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "github.com/sqsonce/") {
			linked = append(linked, line)
		}
	}
	return linked
}
