package ddbtest

import (
	"slices"
	"strings"
)

// difference is a request that the two answer differently.
type difference struct {
	wireRequest
	ours, other    wireAnswer
	stored, theirs string
}

// weRefuse reports whether we answer with one of the texts, as an error or as a reason to cancel.
func (d difference) weRefuse(texts ...string) bool {
	for _, t := range texts {
		if (d.ours.code == invalid || d.ours.code == cancelled) && strings.Contains(d.ours.message, t) {
			return true
		}
	}
	return false
}

// explained are the differences in which AWS's text is on our side.
var explained = []struct {
	name    string
	applies func(difference) bool
}{
	{
		// AWS, API_Condition, of LT, LE, GT, GE and BETWEEN: operands "of type String, Number, or Binary (not a set type)",
		// and of BETWEEN: "the same type, either String, Number, or Binary".
		"the types of values are refused before there is an item to look at",
		func(d difference) bool {
			return d.weRefuse("Incorrect operand type for operator or function", "The BETWEEN operator requires same data type")
		},
	},
	{
		// AWS, API_Condition, of BETWEEN: "the second value ... greater than or equal to" the first: bounds in the wrong order
		// are refused, not empty.
		"bounds in the wrong order are refused",
		func(d difference) bool { return d.weRefuse("The BETWEEN operator requires upper bound") },
	},
	{
		// AWS answers a comparison of a path with itself with this text.
		"a path is not compared with itself",
		func(d difference) bool { return d.weRefuse("The first operand must be distinct") },
	},
	{
		// AWS, API_AttributeValueUpdate, DELETE where no item has the key: "Causes nothing to happen; there is no attribute to
		// delete."
		"an update that only removes makes no item",
		func(d difference) bool {
			return d.ours.code == "" && d.other.code == "" && d.stored != d.theirs && slices.ContainsFunc(d.updates(), removes)
		},
	},
	{
		// AWS, API_UpdateItem, ReturnValues, ALL_OLD: "all of the attributes of the item, as they appeared before": there was
		// no item.
		"ALL_OLD of no item is nothing",
		func(d difference) bool {
			return d.in["ReturnValues"] == "ALL_OLD" && d.stored == d.theirs && !strings.Contains(d.ours.fields, "Attributes") && strings.Contains(d.other.fields, "Attributes")
		},
	},
	{
		// AWS, API_TransactWriteItems: "The document path provided in the update expression is invalid for update."
		"a path that leads nowhere is refused also where it is to be removed",
		func(d difference) bool {
			return d.weRefuse("The document path provided in the update expression is invalid for update")
		},
	},
	{
		// AWS, API_UpdateItem, ReturnValues: "UPDATED_NEW - Returns only the updated attributes": an element of a list is one.
		"of a list only the updated elements are answered",
		func(d difference) bool {
			returns, _ := d.in["ReturnValues"].(string)
			return strings.HasPrefix(returns, "UPDATED_") && d.stored == d.theirs && strings.Contains(d.updates()[0], "[")
		},
	},
	{
		// AWS, Expressions.UpdateExpressions: "If the element doesn't already exist, SET appends the new element at the end of
		// the list."
		"an element set beyond a list's end is appended",
		func(d difference) bool {
			return d.ours.code == "" && d.other.code == "" && strings.Contains(d.theirs, `{"NULL":true}`) && strings.Contains(strings.Join(d.updates(), " "), "]")
		},
	},
}

func removes(update string) bool {
	return !strings.Contains(update, "SET ") && !strings.Contains(update, "ADD ")
}

// updates are the update expressions of the request.
func (d difference) updates() []string {
	var all []string
	if update, ok := d.in["UpdateExpression"].(string); ok {
		all = append(all, update)
	}
	actions, _ := d.in["TransactItems"].([]map[string]map[string]any)
	for _, a := range actions {
		if update, ok := a["Update"]["UpdateExpression"].(string); ok {
			all = append(all, update)
		}
	}
	return all
}
