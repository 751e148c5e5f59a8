package console

import "html/template"

// funcs are those of the templates.
var funcs = template.FuncMap{}
