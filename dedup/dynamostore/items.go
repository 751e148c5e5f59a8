package dynamostore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// target is the item that a write is about.
type target struct {
	table string
	key   map[string]ddbtypes.AttributeValue // nil for a Put
	item  map[string]ddbtypes.AttributeValue // of a Put
}

// targetOf also asks for the item where the write's condition fails, unless the caller has chosen.
func targetOf(w ddbtypes.TransactWriteItem) (target, bool) {
	const allOld = ddbtypes.ReturnValuesOnConditionCheckFailureAllOld
	var t target
	var returns *ddbtypes.ReturnValuesOnConditionCheckFailure
	switch {
	case w.Put != nil:
		t, returns = target{table: aws.ToString(w.Put.TableName), item: w.Put.Item}, &w.Put.ReturnValuesOnConditionCheckFailure
	case w.Update != nil:
		t, returns = target{table: aws.ToString(w.Update.TableName), key: w.Update.Key}, &w.Update.ReturnValuesOnConditionCheckFailure
	case w.Delete != nil:
		t, returns = target{table: aws.ToString(w.Delete.TableName), key: w.Delete.Key}, &w.Delete.ReturnValuesOnConditionCheckFailure
	case w.ConditionCheck != nil:
		t, returns = target{table: aws.ToString(w.ConditionCheck.TableName), key: w.ConditionCheck.Key}, &w.ConditionCheck.ReturnValuesOnConditionCheckFailure
	default:
		return target{}, false
	}
	if *returns == "" {
		*returns = allOld
	}
	return t, t.table != "" && len(t.key)+len(t.item) > 0
}

// prepare checks the writes against each other and against the event's record, which is one more item of the
// transaction.
func (s *Store) prepare(key string, writes []ddbtypes.TransactWriteItem) error {
	if len(writes) > MaxWrites {
		return &WriteError{Index: MaxWrites, Err: ErrTooManyWrites}
	}
	targets := make([]target, len(writes))
	keyNames := map[string][]string{s.table: {attrID}}
	for i, w := range writes {
		var ok bool
		if targets[i], ok = targetOf(w); !ok {
			return &WriteError{Index: i, Err: ErrNoWrite}
		}
		if t := targets[i]; t.key != nil {
			keyNames[t.table] = slices.Sorted(maps.Keys(t.key))
		}
	}
	// The key of a Put is somewhere in its item: another write of the same table says under which names.
	seen := map[string]bool{identity(target{table: s.table, key: values{attrID: text(key)}}, keyNames): true}
	for i, t := range targets {
		id := identity(t, keyNames)
		if id == "" {
			continue
		}
		if seen[id] {
			return &WriteError{Index: i, Err: ErrSameItem}
		}
		seen[id] = true
	}
	return nil
}

// identity is the same for two writes of the same item, and "" where that cannot be told.
func identity(t target, keyNames map[string][]string) string {
	if keyNames[t.table] == nil {
		return ""
	}
	from := t.key
	if from == nil {
		from = t.item
	}
	id := fmt.Sprintf("%q", t.table)
	for _, name := range keyNames[t.table] {
		switch v := from[name].(type) {
		case *ddbtypes.AttributeValueMemberS:
			id += fmt.Sprintf(" %q=S%q", name, v.Value)
		case *ddbtypes.AttributeValueMemberN:
			id += fmt.Sprintf(" %q=N%q", name, v.Value)
		case *ddbtypes.AttributeValueMemberB:
			id += fmt.Sprintf(" %q=B%q", name, v.Value)
		default:
			return ""
		}
	}
	return id
}
