package hosttest

// pending are the tests of this package that fail until the rule is in the code that they need. The list is to be emptied,
// and this file deleted.
var pending = map[string]string{
	"TestFleet/seed_1":  "a FIFO message that fails at its last receive in the function takes the messages behind it to the dead-letter queue unrun: protocol 9, Lambda. ",
	"TestFleet/seed_37": "the same, in about half of the runs. ",
}
