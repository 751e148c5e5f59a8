package dynamooutbox

import (
	"context"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// DynamoDB is away, hangs, throttles or refuses for an hour: Run asks seldom meanwhile, and publishes soon after.
func TestDynamoDBIsAway(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"resets":   {Do: fault.Reset},
		"hangs":    {Do: fault.Delay, Delay: 2 * time.Hour},
		"throttle": {Do: fault.Error, Code: "ThrottlingException"},
		"fails":    {Do: fault.Error},
		"denies":   {Do: fault.Error, Code: "AccessDeniedException"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inRig(t, func(x *rig) {
				ctx, cancel := context.WithCancel(x.Context())
				ended := make(chan error, 1)
				go func() { ended <- x.relay(x.box).Run(ctx) }()
				defer func() {
					cancel()
					if err := <-ended; err != nil {
						x.Errorf("Run: %v", err)
					}
				}()
				time.Sleep(10 * time.Second)
				rule.Prob = 1
				calls := x.calls(func() {
					x.faults(rule)
					time.Sleep(time.Hour)
					x.faults()
				})
				x.mustCommit("g", 0, 1)
				began := time.Now()
				for len(x.arrived("g")) == 0 && time.Since(began) < time.Hour {
					time.Sleep(100 * time.Millisecond)
				}
				x.Logf("%d calls, published after %v", len(calls), time.Since(began))
				if n := len(calls); n > 600 {
					x.Errorf("%d calls in the hour, want at most 600", n)
				}
				if d := time.Since(began); d > 45*time.Second {
					x.Errorf("published %v after the hour, want at most 45 s", d)
				}
			})
		})
	}
}
