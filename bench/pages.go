package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/picture"
	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// machine says when and where a run measures.
func machine(rounds int) string {
	cpu := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %s, %d CPUs, %s, %s, medians of at most %d rounds", time.Now().UTC().Format("2006-01-02 15:04 UTC"), cpu, runtime.NumCPU(),
		runtime.GOOS, runtime.Version(), rounds)
}

// writePages writes the files of the repository that show rows. It writes none of them where a picture lacks a row.
func writePages(dir string, rows []report.Row) error {
	var run string
	for _, r := range rows {
		if r.Scenario == "dedup" {
			run = r.Run
		}
	}
	speed, err := picture.Speed(rows, run)
	if err != nil {
		return err
	}
	cost, err := picture.Cost(rows, run)
	if err != nil {
		return err
	}
	var lines, results bytes.Buffer
	if err := report.Print(report.JSON(&lines), rows); err != nil {
		return err
	}
	if err := report.Results(&results, rows); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"bench/rows.jsonl": lines.Bytes(), "bench/RESULTS.md": results.Bytes(), "docs/images/speed.svg": speed, "docs/images/cost.svg": cost,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
