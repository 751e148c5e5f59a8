package ddbtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Items and values as the cases write them: a string is S, an int N, []byte B, a bool BOOL, nil NULL.
type (
	m  = map[string]any // M, or an item
	l  = []any          // L
	n  string           // N with this text
	ss []string
	ns []string
	bs [][]byte
	// raw is a value that the types above cannot express.
	raw struct{ ddbtypes.AttributeValue }

	item = map[string]ddbtypes.AttributeValue
)

func value(v any) ddbtypes.AttributeValue {
	switch v := v.(type) {
	case string:
		return &ddbtypes.AttributeValueMemberS{Value: v}
	case int:
		return &ddbtypes.AttributeValueMemberN{Value: strconv.Itoa(v)}
	case n:
		return &ddbtypes.AttributeValueMemberN{Value: string(v)}
	case []byte:
		return &ddbtypes.AttributeValueMemberB{Value: v}
	case bool:
		return &ddbtypes.AttributeValueMemberBOOL{Value: v}
	case nil:
		return &ddbtypes.AttributeValueMemberNULL{Value: true}
	case ss:
		return &ddbtypes.AttributeValueMemberSS{Value: v}
	case ns:
		return &ddbtypes.AttributeValueMemberNS{Value: v}
	case bs:
		return &ddbtypes.AttributeValueMemberBS{Value: v}
	case l:
		out := []ddbtypes.AttributeValue{}
		for _, e := range v {
			out = append(out, value(e))
		}
		return &ddbtypes.AttributeValueMemberL{Value: out}
	case m:
		return &ddbtypes.AttributeValueMemberM{Value: attributes(v)}
	case raw:
		return v.AttributeValue
	}
	panic(fmt.Sprintf("ddbtest: a case has a %T", v))
}

// attributes returns nil for nil: the SDK does not send a nil member.
func attributes(v m) item {
	if v == nil {
		return nil
	}
	out := item{}
	for name, e := range v {
		out[name] = value(e)
	}
	return out
}

// show returns the same text for equal values: maps and sets are sorted.
func show(v ddbtypes.AttributeValue) string {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return strconv.Quote(v.Value)
	case *ddbtypes.AttributeValueMemberN:
		return v.Value
	case *ddbtypes.AttributeValueMemberB:
		return fmt.Sprintf("bytes %q", v.Value)
	case *ddbtypes.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	case *ddbtypes.AttributeValueMemberNULL:
		return "null"
	case *ddbtypes.AttributeValueMemberSS:
		return showSet("S", v.Value)
	case *ddbtypes.AttributeValueMemberNS:
		return showSet("N", v.Value)
	case *ddbtypes.AttributeValueMemberBS:
		var members []string
		for _, e := range v.Value {
			members = append(members, string(e))
		}
		return showSet("B", members)
	case *ddbtypes.AttributeValueMemberL:
		var elements []string
		for _, e := range v.Value {
			elements = append(elements, show(e))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case *ddbtypes.AttributeValueMemberM:
		return showItem(v.Value)
	}
	return fmt.Sprintf("%T", v)
}

func showSet(kind string, members []string) string {
	return fmt.Sprintf("set of %s %q", kind, slices.Sorted(slices.Values(members)))
}

func showItem(i item) string {
	if len(i) == 0 {
		return "nothing"
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(i)) {
		fields = append(fields, name+": "+show(i[name]))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func showItems(items []item) string {
	var all []string
	for _, i := range items {
		all = append(all, showItem(i))
	}
	return strings.Join(all, "\n")
}
