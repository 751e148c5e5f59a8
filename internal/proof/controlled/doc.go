// Package controlled tests that processes obey the state of their consumer, while others of them start, die, and lose their store.
package controlled
