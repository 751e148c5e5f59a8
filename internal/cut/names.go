package cut

import (
	"slices"
	"sync"
)

const (
	// MostNames is how many names [Names] keeps apart.
	MostNames = 100
	// OtherNames stands for all further ones.
	OtherNames = "_OTHER"
)

// Names are the names that have a value of their own in a metric, such as those of rules. The first ones keep theirs, and the others are
// reported together. The zero value is ready for use.
type Names struct {
	mu    sync.Mutex
	known []string
}

// Of returns the name, or OtherNames.
func (n *Names) Of(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case slices.Contains(n.known, name):
	case len(n.known) < MostNames:
		n.known = append(n.known, name)
	default:
		return OtherNames
	}
	return name
}
