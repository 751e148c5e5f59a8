package attr

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseNumber(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", 38)
	for _, tt := range []struct {
		in   string
		want Number
		err  error
	}{
		{in: "0", want: "0"}, {in: "-0", want: "0"}, {in: "000.000", want: "0"}, {in: "+7", want: "7"},
		{in: "007", want: "7"}, {in: "1.500", want: "1.5"}, {in: ".5", want: "0.5"}, {in: "5.", want: "5"},
		{in: "1e3", want: "1000"}, {in: "12.5E-3", want: "0.0125"}, {in: "-1.10e1", want: "-11"},
		{in: "1700000000000", want: "1700000000000"},
		{in: nines, want: Number(nines)}, {in: nines + "0", want: Number(nines + "0")}, // 38 significant digits
		{in: nines + "9", err: ErrDigits}, {in: "1." + nines, err: ErrDigits},
		{in: "1E125", want: Number("1" + strings.Repeat("0", 125))}, {in: "1E126", err: ErrOverflow},
		{in: "1E-130", want: Number("0." + strings.Repeat("0", 129) + "1")}, {in: "1E-131", err: ErrUnderflow},
		{in: "", err: ErrNotANumber}, {in: "-", err: ErrNotANumber}, {in: ".", err: ErrNotANumber}, {in: "1e", err: ErrNotANumber},
		{in: "1.2.3", err: ErrNotANumber}, {in: "0x10", err: ErrNotANumber}, {in: "NaN", err: ErrNotANumber},
		{in: " 1", err: ErrNotANumber}, {in: "1e9999999", err: ErrNotANumber}, {in: "1_000", err: ErrNotANumber},
	} {
		got, err := ParseNumber(tt.in)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ParseNumber(%q) = %q, %v; want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

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

func TestNumberSumOutOfRange(t *testing.T) {
	t.Parallel()
	large, _ := ParseNumber("1E125")
	if _, err := large.Add("1"); !errors.Is(err, ErrDigits) {
		t.Errorf("1E125 + 1: got %v, want ErrDigits: nothing is rounded", err)
	}
	most, _ := ParseNumber("9E125")
	if _, err := most.Add(most); !errors.Is(err, ErrOverflow) {
		t.Errorf("9E125 + 9E125: got %v, want ErrOverflow", err)
	}
}

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
