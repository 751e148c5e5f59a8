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

func (t *table) onDemand() bool {
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

// valid checks a throughput that is not nil. member is its path in the request.
func (p *throughput) valid(member string) error {
	for name, n := range map[string]*int64{".readCapacityUnits": p.ReadCapacityUnits, ".writeCapacityUnits": p.WriteCapacityUnits} {
		switch {
		case n == nil:
			return required(member + name)
		case *n < 1:
			return constraint(*n, member+name, "Member must have value greater than or equal to 1")
		}
	}
	return nil
}

// capacityUnits is the throughput of a table or index as it is described. It limits nothing.
type capacityUnits struct {
	NumberOfDecreasesToday int64 // always 0: decreases are not counted
	ReadCapacityUnits      int64
	WriteCapacityUnits     int64
}

func (c *capacityUnits) set(p *throughput) {
	c.ReadCapacityUnits, c.WriteCapacityUnits = *p.ReadCapacityUnits, *p.WriteCapacityUnits
}

// bill changes the billing mode and the table's throughput. The throughput of a table's indexes does not change, so a table with
// global indexes does not become provisioned.
func (t *table) bill(in *updateTableInput, now time.Time) error {
	was, p := t.onDemand(), in.ProvisionedThroughput
	becomes := was && in.BillingMode == "" || in.BillingMode == onDemand
	switch {
	case becomes && p != nil:
		return validation(invalidParameters + noUnitsOnDemand)
	case in.BillingMode == provisioned && p == nil:
		return validation(invalidParameters + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
	case becomes && !was:
		t.BillingModeSummary = &billing{onDemand, seconds(now)}
		t.ProvisionedThroughput = capacityUnits{}
		for i := range t.indexes {
			t.indexes[i].throughput = capacityUnits{}
		}
	case was && !becomes:
		for _, ix := range t.indexes {
			if !ix.local {
				return validation(invalidParameters+"ProvisionedThroughput must be specified for index: %s", ix.name)
			}
		}
		t.BillingModeSummary = &billing{provisioned, t.BillingModeSummary.LastUpdateToPayPerRequestDateTime}
		t.ProvisionedThroughput.set(p)
	case p != nil:
		t.ProvisionedThroughput.set(p)
	}
	return nil
}
