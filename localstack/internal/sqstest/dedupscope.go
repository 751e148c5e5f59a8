package sqstest

var dedupScopeCases = []testCase{
	{name: "dedup scope/queue: another group", run: scopeQueueOtherGroup},
	{name: "dedup scope/group: another group", run: scopeGroupOtherGroup},
	{name: "dedup scope/group: same group", run: scopeGroupSameGroup},
	{name: "dedup scope/group: groups in turn", run: scopeGroupInTurn},
	{name: "dedup scope/change has no effect", run: scopeChange},
}

var perGroup = attrs{"DeduplicationScope": "messageGroup"}

// API CreateQueue, DeduplicationScope: "whether message deduplication occurs at the message group or queue level".
// Recorded: test_fifo_deduplication_not_on_message_group_id.
func scopeQueueOtherGroup(x *exam) {
	q := x.fifo()
	x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
	x.send(q, "b1", inGroup(ptr("b"), ptr("d")))
	x.want(q, "a1")
	x.none(q)
}

// As above.
func scopeGroupOtherGroup(x *exam) {
	q := x.fifo(perGroup)
	x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
	x.send(q, "b1", inGroup(ptr("b"), ptr("d")))
	x.want(q, "a1", "b1")
}

// As above.
func scopeGroupSameGroup(x *exam) {
	q := x.fifo(perGroup)
	x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
	x.send(q, "a2", inGroup(ptr("a"), ptr("d")))
	x.want(q, "a1")
	x.none(q)
}

// As above: what one group does is nothing to the other's memory.
func scopeGroupInTurn(x *exam) {
	q := x.fifo(perGroup)
	x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
	x.send(q, "b1", inGroup(ptr("b"), ptr("d")))
	x.send(q, "a2", inGroup(ptr("a"), ptr("d")))
	x.want(q, "a1", "b1")
	x.none(q)
}

// Recorded, August 2025: the scope stays as the queue was created, though the attribute changes.
func scopeChange(x *exam) {
	q := x.fifo()
	x.ok(x.set(q, perGroup))
	x.send(q, "a1", inGroup(ptr("a"), ptr("d")))
	x.send(q, "b1", inGroup(ptr("b"), ptr("d")))
	x.want(q, "a1")
	x.none(q)
}
