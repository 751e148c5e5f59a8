package sqstest

var fairCases = []testCase{
	{name: "fair/group of a standard queue is returned", run: fairGroup},
	{name: "fair/group of a standard queue locks nothing", run: fairNoLock},
	{name: "fair/group of a standard queue is checked", run: fairChecked},
}

// Guide sqs-fair-queues: MessageGroupId on a standard queue names the tenant. API ReceiveMessage: MessageGroupId.
func fairGroup(x *exam) {
	q := x.standard()
	x.send(q, "a", inGroup(ptr("tenant"), nil))
	if got := x.one(q, "a").Attributes["MessageGroupId"]; got != "tenant" {
		x.fatalf("MessageGroupId %q, want tenant", got)
	}
}

// Guide sqs-fair-queues: it neither orders messages nor limits how many are in flight.
func fairNoLock(x *exam) {
	q := x.standard()
	for _, body := range []string{"a", "b", "c"} {
		x.send(q, body, inGroup(ptr("tenant"), nil))
	}
	for range 3 {
		if got := x.receive(q, 1); len(got) != 1 {
			x.fatalf("received %q, want one message", bodiesOf(got))
		}
	}
}

// API SendMessage, MessageGroupId: the rules for its characters are the same.
func fairChecked(x *exam) {
	q := x.standard()
	for _, group := range illegalTokens {
		_, err := x.trySend(q, "a", inGroup(&group, nil))
		x.fails("the group "+group, err, invalidValue)
	}
}
