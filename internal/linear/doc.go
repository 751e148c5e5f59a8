// Package linear checks what the owners of records were told by a store that keeps them for package dedup: whatever
// happened to messages and machines, the answers must be those of one record that one call after another has changed. No
// two hold it, fences grow, and what is completed stays so.
//
// It is for tests. What a test does to a store is its own; here is how owners behave, what is written down of it and what
// a record may do.
package linear
