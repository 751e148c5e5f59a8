// Package choose has no code of its own. Its examples are the failures that docs/choose.md names, and its tests count what that
// page and docs/cost.md say.
package choose
