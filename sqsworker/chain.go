package sqsworker

// chain is a list through the deliveries themselves, so that it needs no memory of its own.
type chain struct {
	which       chainKind
	first, last *delivery
	count       int
}

// chainKind says which links of the deliveries a chain has.
type chainKind int

const (
	chainRunning chainKind = iota // runningHandlers
	chainPace                     // pace
	chains
)

// links are a delivery's neighbours in each chain.
type links [chains]struct{ before, behind *delivery }

func (c *chain) push(d *delivery) {
	d.links[c.which].before, d.links[c.which].behind = c.last, nil
	if c.last == nil {
		c.first = d
	} else {
		c.last.links[c.which].behind = d
	}
	c.last = d
	c.count++
}

func (c *chain) remove(d *delivery) {
	at := &d.links[c.which]
	if at.before == nil {
		c.first = at.behind
	} else {
		at.before.links[c.which].behind = at.behind
	}
	if at.behind == nil {
		c.last = at.before
	} else {
		at.behind.links[c.which].before = at.before
	}
	at.before, at.behind = nil, nil
	c.count--
}

// next is the delivery behind d.
func (c *chain) next(d *delivery) *delivery { return d.links[c.which].behind }
