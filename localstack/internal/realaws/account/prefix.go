package account

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"slices"
)

// TagKey is the key of the tag that each resource of a run has. Its value is the run's prefix. Nothing here reads it.
const TagKey = "sqsonce-aws"

// NewPrefix returns the prefix of a new run. The names of all its resources begin with it.
func NewPrefix() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return "sqsonce-aws-" + hex.EncodeToString(b[:]) + "-"
}

var (
	validPrefix = regexp.MustCompile(`^sqsonce-aws-[0-9a-f]{8}-$`)
	ofAnyRun    = regexp.MustCompile(`^sqsonce-aws-[0-9a-f]{8}-`)
)

// Only keeps a guard of all runs to the runs of resources with these names. It may not be called while requests are sent.
func (g *Guard) Only(names []string) {
	g.runs = []string{}
	for _, name := range names {
		g.runs = append(g.runs, ofAnyRun.FindString(name))
	}
}

// Mine reports whether a resource of that name is of the run, or of any run where the guard is not for one alone.
func (g *Guard) Mine(name string) bool {
	run := ofAnyRun.FindString(name)
	switch {
	case g.Prefix != "":
		return run == g.Prefix
	case g.runs != nil:
		return run != "" && slices.Contains(g.runs, run)
	}
	return run != ""
}
