package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// place identifies a mutant while lines above it come and go.
type place struct {
	file, kind string
	n          int // among the mutants of this kind on lines with this text, from 1
	text       string
}

func (p place) String() string { return fmt.Sprintf("%s %s %d %s", p.file, p.kind, p.n, p.text) }

type mutant struct {
	place
	status string
	line   int
}

func (m mutant) survived() bool {
	return m.status != "KILLED" && m.status != "TIMED OUT" && m.status != "NOT VIABLE"
}

// readReport reads what gremlins wrote about a package in tree.
func readReport(name, tree, pkg string) ([]mutant, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var report struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("report of gremlins: %w", err)
	}
	var mutants []mutant
	for _, f := range report.Files {
		file := path.Join(pkg, f.Name)
		source, err := os.ReadFile(filepath.Join(tree, file))
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		seen := make(map[place]int)
		slices.SortStableFunc(f.Mutations, func(a, b struct {
			Type, Status string
			Line, Column int
		}) int {
			return cmp.Or(a.Line-b.Line, a.Column-b.Column)
		})
		for _, m := range f.Mutations {
			p := place{file: file, kind: m.Type, text: strings.TrimSpace(lines[m.Line-1])}
			seen[p]++
			n := seen[p]
			p.n = n
			mutants = append(mutants, mutant{place: p, status: m.Status, line: m.Line})
		}
	}
	return mutants, nil
}

// parseList reads a list of equivalent mutants: a line for each place, and below it the reason, indented by a tab. Lines that
// begin with # are comments.
func parseList(list string) ([]place, error) {
	var places []place
	reason := true
	for i, line := range strings.Split(list, "\n") {
		at := func(problem string) error { return fmt.Errorf("survivors.txt:%d: %s", i+1, problem) }
		var p place
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			reason = true
		case !reason:
			return nil, at("the entry above has no reason")
		default:
			fields := strings.SplitN(line, " ", 4)
			if len(fields) < 4 {
				return nil, at("not an entry: file, kind, number, text of the line")
			}
			p.file, p.kind, p.text = fields[0], fields[1], fields[3]
			if _, err := fmt.Sscan(fields[2], &p.n); err != nil {
				return nil, at("not a number: " + fields[2])
			}
			if slices.Contains(places, p) {
				return nil, at("listed twice")
			}
			places, reason = append(places, p), false
		}
	}
	if !reason {
		return nil, fmt.Errorf("survivors.txt: the last entry has no reason")
	}
	return places, nil
}

type result struct {
	counts   map[string]int // by status
	listed   int            // survivors
	unlisted []mutant
	stale    []string
}

func (r result) ok() bool { return len(r.unlisted) == 0 && len(r.stale) == 0 }

// compare finds the survivors that are not listed, and the listed ones of the files in question that are none. A listed
// mutant that timed out is left in peace: the machine may have been slow.
func compare(mutants []mutant, listed []place, inQuestion func(file string) bool) result {
	r := result{counts: make(map[string]int)}
	status := make(map[place]string)
	for _, m := range mutants {
		status[m.place] = m.status
		switch {
		case !m.survived():
			r.counts[m.status]++
		case slices.Contains(listed, m.place):
			r.listed++
		default:
			r.unlisted = append(r.unlisted, m)
		}
	}
	for _, p := range listed {
		switch s, ok := status[p]; {
		case !inQuestion(p.file):
		case !ok:
			r.stale = append(r.stale, fmt.Sprintf("%s: no such line", p))
		case s == "KILLED" || s == "NOT VIABLE":
			r.stale = append(r.stale, fmt.Sprintf("%s: %s", p, strings.ToLower(s)))
		}
	}
	return r
}

func (r result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d killed, %d timed out, %d not viable, %d listed as equivalent, %d not listed, %d stale\n",
		r.counts["KILLED"], r.counts["TIMED OUT"], r.counts["NOT VIABLE"], r.listed, len(r.unlisted), len(r.stale))
	for _, m := range r.unlisted {
		fmt.Fprintf(&b, "survived, line %d: %s\n", m.line, m.place)
	}
	for _, s := range r.stale {
		fmt.Fprintf(&b, "stale: %s\n", s)
	}
	return b.String()
}
