package outboxmodel

// Run is one set of rules, and what is searched with it. The zero value of each rule is the protocol's; the others leave one
// clause out, or do in its place what seems to do as well.
type Run struct {
	Name string // as docs/protocol-outbox.md cites it
	Text string
	Want Fault // what is found first; None: the run holds
	Soak bool  // too large for go test: make soak

	Groups int // 0: one
	Events int // of all groups
	Relays int

	// The outbox is in a SQL database: seqs are serials, transactions may roll back, and what is read is what was committed. In
	// the others it is in DynamoDB: seqs are given by the writers, and a read is a Query that looks at one key after the other.
	SQL bool
	// Refuses are the events that SQS refuses at some arrivals, and accepts at others.
	Refuses Set
	// OnRefusal is what a relay does with a refused event (R4).
	OnRefusal OnRefusal
	// NoDiscard: no operator discards a parked event.
	NoDiscard bool
	// Remembers: SQS never forgets an event.
	Remembers bool
	// Unordered: each event is of a group of its own, no two have an order, and relays read them all at once.
	Unordered bool
	// OwnConfirmation: no probe for an event whose confirmation this relay holds itself (D2).
	OwnConfirmation bool

	Reading
	Sending
	Removing
	Writing
}

// OnRefusal is how a refused event is parked.
type OnRefusal uint8

const (
	Halt   OnRefusal = iota // its group waits for an operator
	Skip                    // it is left out
	Either                  // each relay as it likes, another time otherwise
)

// Reading are the rules of §4.
type Reading struct {
	AtOnce       bool  // DynamoDB applies a transaction at once (it does not)
	Stale        bool  // the Query is eventually consistent
	Probe        Probe // D2
	SendsGaps    bool  // D1: what follows a gap is sent too
	SkippedBegin bool  // D1: a list begins with skipped events, and ends at a gap behind them
	WaitsAtGaps  bool  // D3: an event is sent only after its predecessor's seq was confirmed
	TailFirst    bool  // DynamoDB: rule S1 in place of D2
	Payloads     bool  // what a stream record carries is sent
	Snapshot     bool  // SQL: a statement is a snapshot (MariaDB's is not)
	OneRead      bool  // SQL: no rule S1
	SkipLocked   bool  // S2: a page locks its rows, and skips those that others have locked
	Uncommitted  bool  // S2: READ UNCOMMITTED
}

// Probe is how the predecessor of a run's first event is looked at.
type Probe uint8

const (
	Transactional Probe = iota // TransactGetItems, which a transaction in progress cancels
	GetItem                    // answers beside a transaction in progress
	NoProbe
)

// Sending are the rules of §2 and P5.
type Sending struct {
	Pairs          bool // two events of a group in one request
	FreshDedupIDs  bool // the MessageDeduplicationId is made at each send
	UnknownIsSent  bool // P5: no answer counts as success
	PassesRefusals bool // R4: the group goes on after a refused event, and nothing says so
}

// Removing are the rules of §5, and of parking.
type Removing struct {
	DeleteFirst bool // P1: an event is deleted when it is sent
	TTL         bool // §1: the outbox has a TTL
	RangeDelete bool // P2: all rows up to the confirmed one are deleted
	Cursor      bool // §5: progress is a number; what is not above it is not read
	BlindPark   bool // R3: parking is an update without a condition
}

// Writing are the rules of §3.
type Writing struct {
	NoLock      bool // SQL: transactions of a group run beside each other
	EarlyUnlock bool // S3: the lock is free before the commit is visible
	SeqsRestart bool // the seqs of a group begin again at 1 when it is empty
	PutsAgain   bool // a late copy of a transaction puts its event again where the key is free
}

// Fault is what a run finds.
type Fault uint8

const (
	None        Fault = iota
	Reordered         // an event was accepted before one that was committed before it
	Lost              // an event is gone from the outbox, and was not accepted
	Doubled           // an event was accepted again while SQS remembered it
	Invented          // an event was accepted that was not committed
	Resurrected       // an event that was gone is back
	Stuck             // an undisturbed relay does not empty the outbox
)

func (f Fault) String() string {
	return [...]string{"holds", "reordered", "lost", "doubled", "invented", "resurrected", "stuck"}[f]
}

// Events that are refused.
const (
	first Set = 1 << iota
	second
	third
)

// Runs are all runs. The package's comment has what they found.
var Runs = []Run{
	{Name: "D1", Text: "the protocol", Events: 3, Relays: 2},
	{Name: "D2", Text: "the protocol, four events", Events: 4, Relays: 2},
	{Name: "D3", Text: "two groups, a relay that visits both", Groups: 2, Events: 4, Relays: 1},
	{Name: "D4", Text: "three relays", Events: 2, Relays: 3},
	{Name: "D5", Text: "SQS forgets nothing", Events: 3, Relays: 2, Remembers: true},
	{Name: "D6", Text: "the second of three events is refused and halts its group", Events: 3, Relays: 2, Refuses: second},
	{Name: "D7", Text: "an eventually consistent Query, with the probe", Events: 3, Relays: 2, Reading: Reading{Stale: true}},
	{Name: "D8", Text: "the second of three events is refused and left out", Events: 3, Relays: 2, Refuses: second, OnRefusal: Skip},
	{Name: "D9", Text: "no probe after the relay's own confirmation", Events: 3, Relays: 2, OwnConfirmation: true},
	{Name: "D10", Text: "the first of two events is refused and halts its group", Events: 2, Relays: 2, Refuses: first},
	{Name: "D11", Text: "the first of two events is refused and left out", Events: 2, Relays: 2, Refuses: first, OnRefusal: Skip},
	{Name: "D12", Text: "two groups, two relays that visit both", Groups: 2, Events: 2, Relays: 2},
	{Name: "D13", Text: "both of two events are refused, three relays halt or skip as they like", Events: 2, Relays: 3, Refuses: first | second, OnRefusal: Either},
	{Name: "D14", Text: "D1 with four events and three relays", Events: 4, Relays: 3, Soak: true},
	{Name: "D15", Text: "D3 with two relays", Groups: 2, Events: 4, Relays: 2, Soak: true},
	{Name: "D16", Text: "D6, each event is refused", Events: 3, Relays: 2, Refuses: first | second | third, Soak: true},
	{Name: "D17", Text: "D8, each event is refused", Events: 3, Relays: 2, Refuses: first | second | third, OnRefusal: Skip, Soak: true},
	{Name: "D18", Text: "D9 with four events", Events: 4, Relays: 2, OwnConfirmation: true, Soak: true},
	{Name: "D19", Text: "D8 and D9 together", Events: 3, Relays: 2, Refuses: second, OnRefusal: Skip, OwnConfirmation: true},
	{Name: "S1", Text: "SQL: the group's lock, one read that is a snapshot, rollbacks", SQL: true, Events: 3, Relays: 2, Reading: Reading{Snapshot: true, OneRead: true}},
	{Name: "S2", Text: "S1 with four transactions", SQL: true, Events: 4, Relays: 2, Reading: Reading{Snapshot: true, OneRead: true}},
	{Name: "S3", Text: "SQL: the group's lock, reads that are no snapshot, by rule S1, three relays", SQL: true, Events: 2, Relays: 3},
	{Name: "S4", Text: "SQL: the same, three transactions, two relays", SQL: true, Events: 3, Relays: 2},
	{Name: "S5", Text: "SQL: S4 with three relays", SQL: true, Events: 3, Relays: 3, Soak: true},
	{Name: "S6", Text: "SQL: S4 with four transactions", SQL: true, Events: 4, Relays: 2, Soak: true},

	{Name: "N1", Text: "stream records are sent as they come", Want: Reordered, Events: 3, Relays: 2, Reading: Reading{Payloads: true}},
	{Name: "N2", Text: "an event is deleted before its confirmation", Want: Lost, Events: 3, Relays: 2, Removing: Removing{DeleteFirst: true}},
	{Name: "N3", Text: "no answer counts as sent", Want: Lost, Events: 3, Relays: 2, Sending: Sending{UnknownIsSent: true}},
	{Name: "N4", Text: "an eventually consistent Query, no probe", Want: Reordered, Events: 3, Relays: 2, Reading: Reading{AtOnce: true, Stale: true, Probe: NoProbe}},
	{Name: "N5", Text: "a consistent Query, no probe, although transactions were applied at once", Want: Reordered, Events: 3, Relays: 2, Reading: Reading{AtOnce: true, Probe: NoProbe}},
	{Name: "N6a", Text: "the group's last event is read first, then up to it, if transactions were applied at once", Events: 3, Relays: 2, Reading: Reading{AtOnce: true, Probe: NoProbe, TailFirst: true}},
	{Name: "N6b", Text: "N6a with transactions as they are", Want: Reordered, Events: 3, Relays: 2, Reading: Reading{Probe: NoProbe, TailFirst: true}},
	{Name: "N7", Text: "the probe is a consistent GetItem", Want: Reordered, Events: 3, Relays: 2, Reading: Reading{Probe: GetItem}},
	{Name: "N8", Text: "two events of a group in one request", Want: Reordered, Events: 3, Relays: 2, Sending: Sending{Pairs: true}},
	{Name: "N9", Text: "the outbox has a TTL", Want: Lost, Events: 3, Relays: 2, Removing: Removing{TTL: true}},
	{Name: "N10", Text: "each send has its own MessageDeduplicationId", Want: Doubled, Events: 3, Relays: 2, Sending: Sending{FreshDedupIDs: true}},
	{Name: "N11", Text: "parking has no condition", Want: Resurrected, Events: 2, Relays: 2, Refuses: first, NoDiscard: true, Removing: Removing{BlindPark: true}},
	{Name: "N12", Text: "SQL: serials without the group's lock", Want: Reordered, SQL: true, Events: 3, Relays: 2, Reading: Reading{Snapshot: true}, Writing: Writing{NoLock: true}},
	{Name: "N13", Text: "SQL: a cursor over the serials of several groups", Want: Lost, SQL: true, Unordered: true, Events: 2, Relays: 2, Reading: Reading{Snapshot: true}, Removing: Removing{Cursor: true}, Writing: Writing{NoLock: true}},
	{Name: "N14", Text: "SQL: one read, which is no snapshot", Want: Reordered, SQL: true, Events: 3, Relays: 2, Reading: Reading{OneRead: true}},
	{Name: "N15", Text: "SQL: relays lock the rows of their page and skip locked ones", Want: Reordered, SQL: true, Events: 3, Relays: 2, Reading: Reading{Snapshot: true, OneRead: true, SkipLocked: true}},
	{Name: "N16", Text: "SQL: DELETE of all seqs up to the confirmed one, over several groups", Want: Lost, SQL: true, Unordered: true, Events: 2, Relays: 2, Reading: Reading{Snapshot: true}, Removing: Removing{RangeDelete: true}, Writing: Writing{NoLock: true}},
	{Name: "N17", Text: "the seqs of a group begin again when it is empty", Want: Lost, Events: 2, Relays: 2, Writing: Writing{SeqsRestart: true}},
	{Name: "N18", Text: "SQL: the lock is free before the commit is visible", Want: Reordered, SQL: true, Events: 3, Relays: 2, Reading: Reading{Snapshot: true}, Writing: Writing{EarlyUnlock: true}},
	{Name: "N19", Text: "a late copy of a transaction puts its event again", Want: Resurrected, Events: 2, Relays: 2, Writing: Writing{PutsAgain: true}},
	{Name: "N20", Text: "SQL: READ UNCOMMITTED", Want: Invented, SQL: true, Events: 2, Relays: 2, Reading: Reading{Snapshot: true, Uncommitted: true}},
	{Name: "N21", Text: "a group goes on after a refused event, unmarked", Want: Reordered, Events: 2, Relays: 2, Refuses: first, Sending: Sending{PassesRefusals: true}},
	{Name: "N22", Text: "what follows a gap is sent too", Want: Reordered, Events: 3, Relays: 2, Reading: Reading{SendsGaps: true}},
	{Name: "N23", Text: "SQL: relays wait until a gap in the serials closes", Want: Stuck, SQL: true, Events: 3, Relays: 2, Reading: Reading{Snapshot: true, WaitsAtGaps: true}},
	{Name: "N24", Text: "a list begins with skipped events, and ends at a gap behind them", Want: Stuck, Events: 3, Relays: 2, Refuses: first, OnRefusal: Skip, Reading: Reading{SkippedBegin: true}},
}
