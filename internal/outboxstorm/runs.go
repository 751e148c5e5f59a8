package outboxstorm

import (
	"math/rand/v2"
	"os"
	"testing"
)

// NoProblem runs drawn plans until a thousand events are published, or with SOAK=1 a million. run runs one in a bubble of its own
// and returns what [Run] does.
func NoProblem(t *testing.T, run func(t *testing.T, p Plan) (problem string)) {
	t.Helper()
	most := 1000
	if os.Getenv("SOAK") != "" {
		most = 1_000_000
	} else if testing.Short() {
		most = 200
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	events, runs := 0, 0
	for ; events < most; runs++ {
		p := Draw(func(n int) int { return rng.IntN(n) })
		if problem := run(t, p); problem != "" {
			t.Fatalf("seed %d, run %d: %s", seed, runs, problem)
		}
		events += p.Groups * p.Events
	}
	t.Logf("seed %d: %d events in %d runs", seed, events, runs)
}

// Sees expects that runs with each defect show it.
func Sees(t *testing.T, run func(t *testing.T, p Plan) (problem string), defects ...Defect) {
	t.Helper()
	const most = 40
	for _, d := range defects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(most) {
				if problem := run(t, defective(d, seed)); problem != "" {
					t.Logf("seed %d: %s", seed, problem)
					return
				}
			}
			t.Errorf("%d runs had no problem", most)
		})
	}
}
