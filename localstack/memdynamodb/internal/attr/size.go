package attr

import "strings"

// Size is what an item weighs against the limit of 400 KB and in capacity: names and values in bytes.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func (m Map) Size() int {
	n := 0
	for _, f := range m {
		n += len(f.Name) + Size(f.Value)
	}
	return n
}

// Size is the weight of one value.
func Size(v Value) int {
	switch v := v.(type) {
	case String:
		return len(v)
	case Binary:
		return len(v)
	case Number:
		return numberSize(v)
	case Bool, Null:
		return 1
	case StringSet:
		return stringsSize(v)
	case BinarySet:
		return stringsSize(v)
	case NumberSet:
		n := 0
		for _, e := range v {
			n += numberSize(e)
		}
		return n
	case List:
		n := 3
		for _, e := range v {
			n += 1 + Size(e)
		}
		return n
	case Map:
		return 3 + len(v) + v.Size()
	}
	return 0
}

func stringsSize(set []string) int {
	n := 0
	for _, e := range set {
		n += len(e)
	}
	return n
}

// numberSize is one byte for every two significant digits, one more, and one more for a minus. Digits pair up from the
// decimal point.
func numberSize(n Number) int {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(string(n), "-"), ".")
	size := 1
	if strings.HasPrefix(string(n), "-") {
		size++
	}
	if whole == "0" {
		whole = ""
	}
	pairs := (len(whole)+1)/2 + (len(fraction)+1)/2
	// Pairs of zeros at either end cost nothing. Behind a point the last digit is none.
	switch {
	case fraction == "":
		pairs -= (len(whole) - len(strings.TrimRight(whole, "0"))) / 2
	case whole == "":
		pairs -= (len(fraction) - len(strings.TrimLeft(fraction, "0"))) / 2
	}
	return size + pairs
}
