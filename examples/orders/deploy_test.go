package orders

import (
	"os"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
)

func TestDeploy(t *testing.T) {
	for _, p := range checkDeploy(readDeploy(t), dynamostore.TTLAttribute) {
		t.Error(p)
	}
	if problems := checkDeploy(nil, dynamostore.TTLAttribute); len(problems) < 30 {
		t.Errorf("without files: %d problems, want one for each value: a check that understands nothing finds none", len(problems))
	}
}

func readDeploy(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, file := range []string{
		"deploy/resources.yaml", "deploy/ecs.yaml", "deploy/kubernetes/worker.yaml", "deploy/kubernetes/keda.yaml", "deploy/Dockerfile",
		"docs/deploy.md", "examples/orders/worker/main.go", "go.mod",
	} {
		text := must.Get(os.ReadFile("../../" + file))(t)
		files[file] = string(text)
	}
	return files
}
