package dynamostore

import (
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// itemSize is an item's size as DynamoDB counts it: names and values.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func itemSize(item map[string]ddbtypes.AttributeValue) (n int) {
	for name, v := range item {
		n += len(name) + valueSize(v)
	}
	return n
}

// overhead of a list or map, and of each of its elements.
const (
	collectionOverhead = 3
	elementOverhead    = 1
)

func valueSize(v ddbtypes.AttributeValue) int {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return len(v.Value)
	case *ddbtypes.AttributeValueMemberN:
		return numberSize(v.Value)
	case *ddbtypes.AttributeValueMemberB:
		return len(v.Value)
	case *ddbtypes.AttributeValueMemberSS:
		return len(strings.Join(v.Value, ""))
	case *ddbtypes.AttributeValueMemberNS:
		n := 0
		for _, x := range v.Value {
			n += numberSize(x)
		}
		return n
	case *ddbtypes.AttributeValueMemberBS:
		n := 0
		for _, x := range v.Value {
			n += len(x)
		}
		return n
	case *ddbtypes.AttributeValueMemberL:
		n := collectionOverhead
		for _, x := range v.Value {
			n += elementOverhead + valueSize(x)
		}
		return n
	case *ddbtypes.AttributeValueMemberM:
		return collectionOverhead + len(v.Value)*elementOverhead + itemSize(v.Value)
	default: // a boolean, null
		return 1
	}
}

// numberSize is one byte, one more for every two digits and one for a minus. Digits pair up from the decimal point, and
// pairs of zeros at either end cost nothing.
func numberSize(s string) int {
	size := 1
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		s, size = rest, 2
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if len(whole)%2 == 1 {
		whole = "0" + whole
	}
	if len(fraction)%2 == 1 {
		fraction += "0"
	}
	digits := whole + fraction
	for strings.HasPrefix(digits, "00") {
		digits = digits[2:]
	}
	for strings.HasSuffix(digits, "00") {
		digits = digits[:len(digits)-2]
	}
	return size + len(digits)/2
}
