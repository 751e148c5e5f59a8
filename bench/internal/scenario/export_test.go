package scenario

// Count is how many messages a contestant gets.
var Count = (*Bench).count
