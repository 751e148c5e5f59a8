package memdynamodb_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

// TestRequiredNumbers walks the SDK's model: a boolean or number that is required and missing is refused, not taken for its zero value.
func TestRequiredNumbers(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	required := requiredMembers(t)
	found := map[string]bool{}
	for m := range reflect.TypeOf(c).Methods() {
		known, ok := implemented[m.Name]
		if !ok {
			continue
		}
		in := m.Type.In(2).Elem()
		for _, name := range strings.Fields(known) {
			path := strings.Split(name, ".")
			of, last := structAt(in, path), path[len(path)-1]
			f, ok := of.FieldByName(last)
			if !ok || !required[of.Name()+"."+last] || f.Type.Kind() != reflect.Pointer || f.Type.Elem().Kind() == reflect.String || f.Type.Elem().Kind() == reflect.Struct {
				continue
			}
			found[of.Name()+"."+last] = true
			body := sample(in, required, path).(map[string]any)
			if m.Name == "CreateTable" { // needs some that the model has as optional
				body["AttributeDefinitions"] = []any{map[string]string{"AttributeName": "id", "AttributeType": "S"}}
				body["KeySchema"] = []any{map[string]string{"AttributeName": "id", "KeyType": "HASH"}}
				if path[0] != "ProvisionedThroughput" {
					body["BillingMode"] = "PAY_PER_REQUEST"
				}
			}
			_, _, answer := send(t, srv, m.Name, string(must.Get(json.Marshal(body))(t)))
			if want := strings.ToLower(last[:1]) + last[1:] + "' failed to satisfy constraint: Member must not be null"; !strings.Contains(answer, want) {
				t.Errorf("%s without %s: got %s, want %s", m.Name, name, answer, want)
			}
		}
	}
	for _, want := range []string{"TimeToLiveSpecification.Enabled", "ProvisionedThroughput.WriteCapacityUnits", "StreamSpecification.StreamEnabled"} {
		if !found[want] {
			t.Errorf("the walk did not come to %s", want)
		}
	}
}

// structAt returns the struct that has the last member of a path.
func structAt(of reflect.Type, path []string) reflect.Type {
	for _, name := range path[:len(path)-1] {
		f, _ := of.FieldByName(name)
		of = element(f.Type)
	}
	return of
}

// element is the type within pointers, lists and maps.
func element(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	return of
}

// sample returns a value of a type: an object has its required members, and those on the path but for the last one.
func sample(of reflect.Type, required map[string]bool, path []string) any {
	switch of.Kind() {
	case reflect.Pointer:
		return sample(of.Elem(), required, path)
	case reflect.Slice:
		return []any{sample(of.Elem(), required, path)}
	case reflect.String:
		return "orders"
	case reflect.Bool:
		return true
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range reflect.VisibleFields(of) {
			on := len(path) > 0 && path[0] == f.Name
			switch special := map[string]any{"KeyType": "HASH", "AttributeType": "S", "Projection": map[string]string{"ProjectionType": "ALL"}}[f.Name]; {
			case on && len(path) == 1:
			case on:
				out[f.Name] = sample(f.Type, required, path[1:])
			case required[of.Name()+"."+f.Name] && special != nil:
				out[f.Name] = special
			case required[of.Name()+"."+f.Name]:
				out[f.Name] = sample(f.Type, required, nil)
			}
		}
		return out
	}
	return 1
}

// requiredMembers are the members that the SDK's source says are required: "Type.Member".
func requiredMembers(t *testing.T) map[string]bool {
	t.Helper()
	dir := must.Get(exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2/service/dynamodb").Output())(t)
	root := strings.TrimSpace(string(dir))
	all := map[string]bool{}
	for _, file := range append(must.Get(filepath.Glob(filepath.Join(root, "api_op_*.go")))(t), filepath.Join(root, "types", "types.go")) {
		parsed := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments))(t)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					if len(f.Names) == 1 && strings.Contains(f.Doc.Text(), "This member is required.") {
						all[spec.Name.Name+"."+f.Names[0].Name] = true
					}
				}
			}
			return false
		})
	}
	return all
}
