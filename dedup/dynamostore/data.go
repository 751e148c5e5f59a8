package dynamostore

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// encodeData stores a result as a string, as Powertools does with its JSON, and anything that is no text as it is.
func encodeData(b []byte) ddbtypes.AttributeValue {
	if utf8.Valid(b) {
		return text(string(b))
	}
	return &ddbtypes.AttributeValueMemberB{Value: b}
}

// decodeData reads a result back. Powertools for TypeScript stores the value itself, not its JSON: it is encoded here.
func decodeData(v ddbtypes.AttributeValue) ([]byte, error) {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return []byte(v.Value), nil
	case *ddbtypes.AttributeValueMemberB:
		return v.Value, nil
	}
	plain, err := plainValue(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}

func plainValue(v ddbtypes.AttributeValue) (any, error) {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberN:
		return json.Number(v.Value), nil
	case *ddbtypes.AttributeValueMemberBOOL:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberNULL:
		return nil, nil
	case *ddbtypes.AttributeValueMemberB:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberSS:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberBS:
		return v.Value, nil
	case *ddbtypes.AttributeValueMemberNS:
		ns := make([]json.Number, len(v.Value))
		for i, n := range v.Value {
			ns[i] = json.Number(n)
		}
		return ns, nil
	case *ddbtypes.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, e := range v.Value {
			var err error
			if list[i], err = plainValue(e); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *ddbtypes.AttributeValueMemberM:
		m := make(map[string]any, len(v.Value))
		for k, e := range v.Value {
			var err error
			if m[k], err = plainValue(e); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return nil, fmt.Errorf("dynamostore: attribute value of type %T", v)
}
