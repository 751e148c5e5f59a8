package memdynamodb

import (
	"slices"
	"time"
)

// The billing modes.
const (
	onDemand    = "PAY_PER_REQUEST"
	provisioned = "PROVISIONED"
)

const noUnitsOnDemand = "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"

// billing is how a table is billed. A table that was always provisioned has none.
type billing struct {
	BillingMode                       string
	LastUpdateToPayPerRequestDateTime float64
}

func (t *tableState) onDemand() bool {
	return t.BillingModeSummary != nil && t.BillingModeSummary.BillingMode == onDemand
}

func validBilling(mode string) error {
	if !slices.Contains([]string{"", provisioned, onDemand}, mode) {
		return constraint(mode, "billingMode", "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]")
	}
	return nil
}

// throughput is the ProvisionedThroughput of a request.
type throughput struct{ ReadCapacityUnits, WriteCapacityUnits *int64 }

const maxUnits = 1_000_000_000_000

// valid checks a throughput, if there is one. member is its path in the request.
func (p *throughput) valid(member string) error {
	if p == nil {
		return nil
	}
	units := []struct {
		name, member string
		n            *int64
	}{
		{"WriteCapacityUnits", member + ".writeCapacityUnits", p.WriteCapacityUnits},
		{"ReadCapacityUnits", member + ".readCapacityUnits", p.ReadCapacityUnits},
	}
	var broken []error
	for _, u := range units {
		switch {
		case u.n == nil:
			broken = append(broken, required(u.member))
		case *u.n < 1:
			broken = append(broken, constraint(*u.n, u.member, "Member must have value greater than or equal to 1"))
		}
	}
	if err := constraints(broken...); err != nil {
		return err
	}
	for _, u := range slices.Backward(units) {
		if *u.n > maxUnits {
			return validation("Given value %d for %s is out of bounds", *u.n, u.name)
		}
	}
	return nil
}

// capacityUnits is the throughput of a table or index in descriptions. The server doesn't limit requests by it.
type capacityUnits struct {
	LastIncreaseDateTime   float64 `json:",omitempty"`
	LastDecreaseDateTime   float64 `json:",omitempty"`
	NumberOfDecreasesToday int64
	ReadCapacityUnits      int64
	WriteCapacityUnits     int64
}

func (c *capacityUnits) set(p *throughput) {
	c.ReadCapacityUnits, c.WriteCapacityUnits = *p.ReadCapacityUnits, *p.WriteCapacityUnits
}

// take sets the units and the number of decreases to those of another throughput.
func (c *capacityUnits) take(o capacityUnits) {
	c.ReadCapacityUnits, c.WriteCapacityUnits, c.NumberOfDecreasesToday = o.ReadCapacityUnits, o.WriteCapacityUnits, o.NumberOfDecreasesToday
}

// change sets another throughput. It refuses the same one: AWS does. what is "table" or "index" and its name.
func (c *capacityUnits) change(p *throughput, what string, now time.Time) error {
	*c = c.at(now)
	before := *c
	c.set(p)
	if c.ReadCapacityUnits == before.ReadCapacityUnits && c.WriteCapacityUnits == before.WriteCapacityUnits {
		return validation("The provisioned throughput for the %s will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the table: %d. Requested ReadCapacityUnits: %d. Current WriteCapacityUnits provisioned for the table: %d. Requested WriteCapacityUnits: %d. Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
			what, before.ReadCapacityUnits, c.ReadCapacityUnits, before.WriteCapacityUnits, c.WriteCapacityUnits)
	}
	if c.ReadCapacityUnits > before.ReadCapacityUnits || c.WriteCapacityUnits > before.WriteCapacityUnits {
		c.LastIncreaseDateTime = seconds(now)
	}
	if c.ReadCapacityUnits < before.ReadCapacityUnits || c.WriteCapacityUnits < before.WriteCapacityUnits {
		c.LastDecreaseDateTime = seconds(now)
		c.NumberOfDecreasesToday++
	}
	return nil
}

// at returns the throughput as it is described at a time: decreases count by the UTC day.
func (c *capacityUnits) at(now time.Time) capacityUnits {
	out := *c
	if last := time.UnixMilli(int64(c.LastDecreaseDateTime * 1000)); !utcDay(last).Equal(utcDay(now)) {
		out.NumberOfDecreasesToday = 0
	}
	return out
}

func utcDay(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
