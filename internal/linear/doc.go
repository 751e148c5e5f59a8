// Package linear is for tests of stores of package dedup. It checks that a history of concurrent calls is linearizable:
// whatever happened to messages and machines, the results of the calls must be those of one record per key that the calls
// changed one after another. Then no two owners have the lease at the same time, fences grow, and a completed record stays
// completed.
//
// A test starts the stores and the faults. This package has the owners ([Host]), the record of their calls ([History]) and
// the model of a record.
package linear
