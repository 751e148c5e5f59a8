package sqlstore

import (
	"strings"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/field"
)

// A complete writes the result and the texts of field.Texts. A new owner empties those of the result.
var (
	textNames   = eachText(func(f field.Text) string { return f.Name })
	emptyTexts  = eachText(func(f field.Text) string { return f.Name + " = ''" })
	emptyResult = "result = NULL, " + eachText(func(f field.Text) string {
		if f.OfResult {
			return f.Name + " = ''"
		}
		return ""
	})
	complete = "UPDATE {records} SET result = ?, " + eachText(func(f field.Text) string {
		if f.OfResult {
			return f.Name + " = ?"
		}
		return f.Name + " = COALESCE(?, " + f.Name + ")"
	}) + ", status = 'COMPLETED' WHERE id = ? AND owner = ?"
)

// eachText joins what of returns for the texts, where it is not empty.
func eachText(of func(field.Text) string) string {
	var all []string
	for _, f := range field.Texts {
		if part := of(f); part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, ", ")
}

// completeArgs are the arguments of complete.
func completeArgs(l dedup.Lease, res dedup.Result) []any {
	args := []any{res.Data}
	for _, f := range field.Texts {
		text, given := f.Of(res)
		switch {
		case given || f.OfResult:
			args = append(args, text)
		default:
			args = append(args, nil) // the text in the row stays
		}
	}
	return append(args, l.Key, l.Owner)
}
