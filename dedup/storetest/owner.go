package storetest

import (
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/suite"
)

var ownerCases = []testCase{
	{name: "owner/names its process", run: func(x *exam) {
		inspector, ok := x.Store.(dedup.Inspector)
		if !ok {
			suite.Unsupported("the store is no dedup.Inspector")
		}
		var names, owners []string
		for _, key := range []string{"first", "second"} {
			x.handle(attributeConsumer+"#"+key, x.slow(nil))
			r, err := inspector.Inspect(x.ctx, attributeConsumer+"#"+key)
			if err != nil {
				x.fatalf("Inspect: got error %v", err)
			}
			name, fence := r.LastRun()
			if fence != r.Fence {
				x.fatalf("LastRun of a completed record: got fence %d, want its own %d", fence, r.Fence)
			}
			names, owners = append(names, name), append(owners, r.Owner)
		}
		if names[0] == "" || names[0] != names[1] || owners[0] == owners[1] {
			x.fatalf("owners of two events of a process: got %q, which name the processes %q", owners, names)
		}
	}},
}
