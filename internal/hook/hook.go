// Package hook lets packages of ours call functions that a public package does not export. The public package offers them when it
// is initialized. A package that imports it takes them, into variables with their types: internal/inboxkit and internal/fifokit.
package hook

var offered = map[string]any{}

// Offer offers functions by their names. It is for the init of a package.
func Offer(functions map[string]any) {
	for name, f := range functions {
		offered[name] = f
	}
}

// Take returns the function of a name. It panics if that was not offered, or has another type.
func Take[F any](name string) F { return offered[name].(F) }
