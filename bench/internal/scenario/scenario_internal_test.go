package scenario

// Count returns how many messages a contestant gets.
var Count = (*Bench).count
