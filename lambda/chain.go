package lambda

import "github.com/aws/aws-lambda-go/events"

// chains are the lists of records that run one after the other; different lists run in parallel. On a standard queue
// each record is a list of its own.
type chains struct {
	heads []int // nil: every record
	next  []int // of each record; -1: the last
}

func newChains(records []events.SQSMessage, fifo bool) chains {
	if !fifo {
		return chains{}
	}
	c := chains{next: make([]int, len(records))}
	last := map[string]int{} // by group
	for i := range records {
		c.next[i] = -1
		// A missing group ID, which SQS does not let in, makes a group of all that lack it.
		g := records[i].Attributes["MessageGroupId"]
		if prev, ok := last[g]; ok {
			c.next[prev] = i
		} else {
			c.heads = append(c.heads, i)
		}
		last[g] = i
	}
	return c
}

// after returns the record that waits for i, or -1.
func (c *chains) after(i int) int {
	if c.next == nil {
		return -1
	}
	return c.next[i]
}

// count is how many lists n records make; head is the first record of one.
func (c *chains) count(n int) int {
	if c.heads == nil {
		return n
	}
	return len(c.heads)
}

func (c *chains) head(i int) int {
	if c.heads == nil {
		return i
	}
	return c.heads[i]
}
