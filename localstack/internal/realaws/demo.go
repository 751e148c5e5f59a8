package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
)

// repository is where `make aws` starts the program: in the folder of its module.
const repository = "../../.."

// demo deploys template.yaml with SAM as a stack of the run, and runs the demo on it.
func (r runner) demo(ctx context.Context) error {
	stack := r.prefix + "demo"
	built, bin := filepath.Join(r.dir, "build"), filepath.Join(r.dir, "bin")
	for _, args := range [][]string{
		{"build", "--template", repository + "/template.yaml", "--build-dir", built, "--cache-dir", filepath.Join(r.dir, "cache")},
		// No samconfig.toml: it could name another stack.
		{"deploy", "--template-file", filepath.Join(built, "template.yaml"), "--stack-name", stack, "--resolve-s3",
			"--region", r.cfg.Region, "--capabilities", "CAPABILITY_IAM", "--parameter-overrides", "Keep=false",
			"--config-file", filepath.Join(r.dir, "none.toml"), "--no-confirm-changeset", "--no-progressbar"},
	} {
		if err := r.sam(ctx, args...); err != nil {
			return err
		}
	}
	outputs, err := os.Create(filepath.Join(r.dir, "outputs.json"))
	if err != nil {
		return err
	}
	defer outputs.Close()
	list := r
	list.out = outputs
	if err := list.sam(ctx, "list", "stack-outputs", "--stack-name", stack, "--region", r.cfg.Region, "--output", "json"); err != nil {
		return err
	}
	if err := r.command(ctx, repository+"/examples", nil, "go", "build", "-o", bin+"/", "./orders/demo", "./orders/publish", "./orders/worker"); err != nil {
		return err
	}
	return r.command(ctx, repository+"/examples/orders", []string{"STACK_OUTPUTS=" + outputs.Name(), "STORE=", "ORDERS="}, filepath.Join(bin, "demo"))
}

func (r runner) sam(ctx context.Context, args ...string) error {
	return r.command(ctx, ".", []string{"SAM_CLI_TELEMETRY=0"}, cmp.Or(os.Getenv("SAM"), "sam"), args...)
}
