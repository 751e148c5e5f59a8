package attr

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestNumberArithmetic compares with math/big on random decimals: canonical text, order, sum and difference.
func TestNumberArithmetic(t *testing.T) {
	t.Parallel()
	decimal := rapid.StringMatching(`-?[0-9]{1,15}(\.[0-9]{1,15})?`)
	rapid.Check(t, func(t *rapid.T) {
		x, y := decimal.Draw(t, "x"), decimal.Draw(t, "y")
		a, err1 := ParseNumber(x)
		b, err2 := ParseNumber(y)
		if err1 != nil || err2 != nil {
			t.Fatalf("ParseNumber: %v, %v", err1, err2)
		}
		rx, ry := rat(x), rat(y)
		if rat(string(a)).Cmp(rx) != 0 {
			t.Fatalf("ParseNumber(%s) = %s, another number", x, a)
		}
		if (a == b) != (rx.Cmp(ry) == 0) {
			t.Fatalf("texts %s and %s are equal or not, the numbers the other way", a, b)
		}
		if got := sign(a.Compare(b)); got != rx.Cmp(ry) {
			t.Fatalf("%s.Compare(%s) = %d, want %d", a, b, got, rx.Cmp(ry))
		}
		sum, err1 := a.Add(b)
		diff, err2 := a.Sub(b)
		if err1 != nil || err2 != nil {
			t.Fatalf("%s +- %s: %v, %v", a, b, err1, err2)
		}
		if rat(string(sum)).Cmp(new(big.Rat).Add(rx, ry)) != 0 || rat(string(diff)).Cmp(new(big.Rat).Sub(rx, ry)) != 0 {
			t.Fatalf("%s + %s = %s, %s - %s = %s", a, b, sum, a, b, diff)
		}
	})
}

func rat(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
func sign(n int) int        { return big.NewInt(int64(n)).Sign() }

func TestNumberSize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n    Number
		want int
	}{{"0", 1}, {"1", 2}, {"12", 2}, {"123", 3}, {"-123", 4}, {"1000", 2}, {"10", 2}, {"100", 2}, {"-100", 3}, {"0.5", 2}, {"-0.5", 3}, {"0.01", 2}, {"0.005", 2}, {"0.0012", 2}, {"0.00123", 3}, {"1.5", 3}, {"10.5", 3}, {"100.25", 4}, {"1700000000000", 3}, {"1700000000001", 8}} {
		if got := Size(tt.n); got != tt.want {
			t.Errorf("Size(%s) = %d, want %d", tt.n, got, tt.want)
		}
	}
}
