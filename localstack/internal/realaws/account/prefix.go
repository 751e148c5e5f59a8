package account

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strings"
)

// TagKey is the key of the tag that each resource of a run has. Its value is the run's prefix.
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

// Mine reports whether a resource of that name is of the run, or of any run where the guard is not for one alone.
func (g *Guard) Mine(name string) bool {
	if g.Prefix == "" {
		return ofAnyRun.MatchString(name)
	}
	return strings.HasPrefix(name, g.Prefix)
}
