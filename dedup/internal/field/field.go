// Package field has the texts that a complete stores in a record, beside the data of the result. The stores of DynamoDB, SQL and
// Redis walk the list. A new text needs a row here and, for SQL, a column in a migration. For duplicates Redis's acquire.lua
// returns those of the result by name.
package field

import (
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// Text is one of them.
type Text struct {
	// Name is that of DynamoDB's attribute, of the column, and of the field of a hash.
	Name string
	// OfResult says that a new owner and a reopen remove the text, like the data. Other texts stay.
	OfResult bool
	// Of returns the text. If it isn't given, the one in the record stays.
	Of func(dedup.Result) (text string, given bool)
	// Set puts the text of a record that was read where operators see it.
	Set func(r *dedup.Record, text string)
}

// Texts are all of them.
var Texts = []Text{
	{
		Name: "validation", OfResult: true, // Powertools has the name, too
		Of:  func(r dedup.Result) (string, bool) { return r.Validation, r.Validation != "" },
		Set: func(r *dedup.Record, text string) { r.Result.Validation = text },
	},
	{
		Name: "error", // of the last release, or why the event was skipped
		Of:   func(r dedup.Result) (string, bool) { return cut.Cause(r.Skipped), r.Skipped != nil },
		Set:  func(r *dedup.Record, text string) { r.LastError = text },
	},
	{
		Name: "note", // an operator's, of the last reopen or complete
		Of: func(r dedup.Result) (string, bool) {
			note := cut.Text(r.Note, cut.MostCause)
			return note, note != ""
		},
		Set: func(r *dedup.Record, text string) { r.Note = text },
	},
}
