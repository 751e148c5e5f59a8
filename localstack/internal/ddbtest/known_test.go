package ddbtest

const (
	parentheses = "does not take parentheses around an operand"
	noItem      = "does not return the item in the error of a failed condition of PartiQL"
	operators   = "does not count operators"
	types       = "does not look at the types of values before it has the item"
	texts       = "has a text of its own where AWS documents another"
	backups     = "knows no continuous backups"
	unused      = "does not look for unused placeholders where there is no update expression"
)

// dynoxideKnown are the cases that dynoxide 1.2.1 is known to fail.
var dynoxideKnown = map[string]string{
	"batch statement/a failed condition's item": noItem,
	"statement/a failed condition's item":       noItem,
	"statement/conditions":                      "knows no functions, IN with brackets or OR in parentheses in a WHERE clause",
	"statement/update, documented clauses":      "takes one SET clause only",

	"refused statement/DELETE FROM \"T\" WHERE id='a' garbage []":    "does not read a statement to its end",
	"refused statement/SELECT * FROM \"T\" WHERE id=? [a b]":         "does not count parameters",
	"refused statement/UPDATE \"T\" SET id='b' WHERE id='a' []":      "looks for the item before it looks at the statement",
	"batch write/refused as a whole":                                 "takes a request that is a put and a delete at once",
	"transaction/refused as a whole":                                 "takes an action that is a put and a delete at once",
	"transact get/in the order asked for, missing ones too":          "adds the key to a projection without it",
	"table/named by its ARN":                                         "takes names only",
	"update table/an index added has the items that fit":             "puts items in an index whose values cannot be its keys",
	"update table/indexes refused":                                   "takes the definition of an attribute with another type",
	"update table/throughput":                                        "does not change the throughput of an index",
	"update table/throughput refused":                                "takes an index added while the throughput changes",
	"update table/to on demand and back":                             "keeps the throughput of an index on demand",
	"setting/table class":                                            texts,
	"setting/encryption":                                             "does not change the encryption",
	"setting/encryption refused":                                     "takes it",
	"setting/no stream":                                              "takes it",
	"tag/fifty":                                                      texts,
	"tag/of no table":                                                "denies access",
	"tag/refused, and nothing is tagged":                             texts,
	"tag/refused at creation, and there is no table":                 "creates the table",
	"tag/responses have no body":                                     "returns an empty object",
	"backup/point-in-time recovery is switched":                      backups,
	"backup/refused":                                                 backups,
	"ttl/disabled already":                                           "takes it",
	"ttl/enabled and described":                                      "takes it twice",
	"query/refused":                                                  "compares a key with values of another type",
	"projection/refused":                                             "takes a projection with overlapping or repeated paths",
	"placeholder/a value with a bad key":                             "takes any characters in a placeholder that no expression names",
	"placeholder/a hundred operands of IN":                           "takes any number",
	"placeholder/a name unused":                                      unused,
	"placeholder/a value unused":                                     unused,
	"placeholder/three hundred operators of a condition":             operators,
	"placeholder/three hundred operators of an update":               operators,
	"condition/((num) = :six)":                                       parentheses,
	"condition/(num) = (:five)":                                      parentheses,
	"condition/(size(str)) IN ((:four), (:five))":                    parentheses,
	"condition/contains((strs), (:x))":                               parentheses,
	"refused condition/ATTRIBUTE_EXISTS(num)":                        "takes functions in any case",
	"refused condition/attribute_type(num, :dog)":                    types,
	"refused condition/attribute_type(num, :five)":                   types,
	"refused condition/num < :true":                                  types,
	"refused condition/num > :list":                                  types,
	"refused condition/num BETWEEN :true AND :true":                  types,
	"refused condition/num = num":                                    "compares a path with itself",
	"refused update/ ":                                               "takes an expression of nothing but space",
	"refused update/SET els = list_append(list_append(els, :l), :l)": "takes list_append in list_append",
	"refused update/SET els = list_append(str, :l)":                  texts,
	"refused update/SET num = str + :n":                              texts,
	"return values/a failed condition's item":                        "takes any word for ReturnValuesOnConditionCheckFailure",
	"return values/update, the whole item":                           "returns the key for ALL_OLD when there was no item",
	"return values/update, what it touched":                          "returns the whole list when one element changed",
	"update/REMOVE and DELETE of no item make none":                  "makes an item",
	"update expression/REMOVE els[0], els[1]":                        "removes by positions that an earlier removal has moved",
	"update expression/SET els[50] = :n, els[40] = :s":               "fills the list up to the index",
	"update expression/SET els[99] = :n":                             "fills the list up to the index",
}
