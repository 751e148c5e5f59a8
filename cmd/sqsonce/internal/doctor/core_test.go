package doctor

import "testing"

func TestHealthy(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "orders.fifo"} {
		a := healthy(t, queue)
		for _, f := range a.examine() {
			t.Log(f)
		}
	}
}
