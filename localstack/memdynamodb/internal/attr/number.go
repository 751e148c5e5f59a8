package attr

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// The limits of a number: 38 significant digits, and magnitudes from 1E-130 to 9.9...E+125.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
const (
	maxDigits    = 38
	maxMagnitude = 125
	minMagnitude = -130
)

//lint:file-ignore ST1005 the texts are DynamoDB's, answered as they are

// Errors of ParseNumber and of arithmetic. Their texts are DynamoDB's.
var (
	ErrNotANumber = errors.New("not a number")
	ErrDigits     = errors.New("Attempting to store more than 38 significant digits in a Number")
	ErrOverflow   = errors.New("Number overflow. Attempting to store a number with magnitude larger than supported range")
	ErrUnderflow  = errors.New("Number underflow. Attempting to store a number with magnitude smaller than supported range")
)

// ParseNumber reads a decimal, with or without fraction and exponent, and returns its canonical form: without a plus
// sign, without leading and trailing zeros, without exponent. The error is one of the Err values of this file.
func ParseNumber(s string) (Number, error) {
	if canonicalInteger(s) {
		return Number(s), nil
	}
	rest, negative := s, false
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		negative, rest = rest[0] == '-', rest[1:]
	}
	mantissa, exponent := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(rest[i+1:]); err != nil || exponent > 1<<20 || exponent < -1<<20 {
			return "", ErrNotANumber
		}
		mantissa = rest[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", ErrNotANumber
	}
	return canonical(negative, digits, exponent-len(fraction))
}

// canonicalInteger reports whether s is an integer of at most 18 digits in canonical form. Nearly all numbers are, and
// they need no big.Int.
func canonicalInteger(s string) bool {
	if s == "" || len(s) > 18 || s[0] == '0' {
		return s == "0"
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// canonical returns the number that is digits times ten to the exponent.
func canonical(negative bool, digits string, exponent int) (Number, error) {
	digits = strings.TrimLeft(digits, "0")
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	digits = trimmed
	if digits == "" {
		return "0", nil
	}
	switch magnitude := exponent + len(digits) - 1; {
	case len(digits) > maxDigits:
		return "", ErrDigits
	case magnitude > maxMagnitude:
		return "", ErrOverflow
	case magnitude < minMagnitude:
		return "", ErrUnderflow
	}
	var b strings.Builder
	if negative {
		b.WriteByte('-')
	}
	switch point := len(digits) + exponent; {
	case exponent >= 0:
		b.WriteString(digits)
		b.WriteString(strings.Repeat("0", exponent))
	case point > 0:
		b.WriteString(digits[:point] + "." + digits[point:])
	default:
		b.WriteString("0." + strings.Repeat("0", -point) + digits)
	}
	return Number(b.String()), nil
}

// parts returns the number as an integer times ten to the exponent.
func (n Number) parts() (*big.Int, int) {
	whole, fraction, _ := strings.Cut(string(n), ".")
	i, _ := new(big.Int).SetString(whole+fraction, 10) // without its point, a canonical text is an integer
	return i, -len(fraction)
}

// align returns both numbers as integers times ten to one exponent.
func align(a, b Number) (x, y *big.Int, exponent int) {
	x, ex := a.parts()
	y, ey := b.parts()
	exponent = min(ex, ey)
	scale := func(v *big.Int, by int) {
		if by > 0 {
			v.Mul(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(by)), nil))
		}
	}
	scale(x, ex-exponent)
	scale(y, ey-exponent)
	return x, y, exponent
}

// Compare orders two numbers.
func (n Number) Compare(o Number) int {
	if n == o {
		return 0
	}
	if canonicalInteger(string(n)) && canonicalInteger(string(o)) {
		if len(n) != len(o) {
			return len(n) - len(o)
		}
		return strings.Compare(string(n), string(o))
	}
	x, y, _ := align(n, o)
	return x.Cmp(y)
}

// Add returns the exact sum, or ErrDigits, ErrOverflow or ErrUnderflow: nothing is rounded.
func (n Number) Add(o Number) (Number, error) {
	x, y, exponent := align(n, o)
	return fromInt(x.Add(x, y), exponent)
}

// Sub returns the exact difference, or an error as Add does.
func (n Number) Sub(o Number) (Number, error) {
	x, y, exponent := align(n, o)
	return fromInt(x.Sub(x, y), exponent)
}

func fromInt(v *big.Int, exponent int) (Number, error) {
	return canonical(v.Sign() < 0, new(big.Int).Abs(v).String(), exponent)
}
