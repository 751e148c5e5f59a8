package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// repository is where `make aws` starts the program: in the folder of its module.
const repository = "../../.."

// demo deploys template.yaml with SAM as a stack of the run, and runs the demo on it.
func (r runner) demo(ctx context.Context) error {
	stack, bucket := r.prefix+"demo", r.prefix+"artifacts"
	if err := r.createBucket(ctx, bucket); err != nil {
		return err
	}
	built := filepath.Join(r.dir, "build")
	for _, args := range [][]string{
		{"build", "--template", repository + "/template.yaml", "--build-dir", built, "--cache-dir", filepath.Join(r.dir, "cache")},
		// A bucket of the run: by itself SAM makes a stack that it keeps. No samconfig.toml: it could name another stack.
		{"deploy", "--template-file", filepath.Join(built, "template.yaml"), "--stack-name", stack, "--s3-bucket", bucket,
			"--region", r.cfg.Region, "--capabilities", "CAPABILITY_IAM", "--parameter-overrides", "Keep=false",
			"--config-file", filepath.Join(r.dir, "none.toml"), "--no-confirm-changeset", "--no-progressbar"},
	} {
		if err := r.command(ctx, ".", []string{"SAM_CLI_TELEMETRY=0"}, cmp.Or(os.Getenv("SAM"), "sam"), args...); err != nil {
			return err
		}
	}
	outputs, err := r.writeOutputs(ctx, stack)
	if err != nil {
		return err
	}
	bin := filepath.Join(r.dir, "bin")
	if err := r.command(ctx, repository+"/examples", nil, "go", "build", "-o", bin+"/", "./orders/demo", "./orders/publish", "./orders/worker"); err != nil {
		return err
	}
	return r.command(ctx, repository+"/examples/orders", []string{"STACK_OUTPUTS=" + outputs, "STORE=", "ORDERS="}, filepath.Join(bin, "demo"))
}

// createBucket creates the bucket of the functions' code.
func (r runner) createBucket(ctx context.Context, name string) error {
	in := &s3.CreateBucketInput{Bucket: &name}
	if r.cfg.Region != "us-east-1" { // S3 refuses this one as a constraint
		in.CreateBucketConfiguration = &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(r.cfg.Region)}
	}
	_, err := newS3(r.cfg).CreateBucket(ctx, in)
	return err
}

// writeOutputs writes the outputs of the stack to a file.
func (r runner) writeOutputs(ctx context.Context, stack string) (file string, err error) {
	out, err := cloudformation.NewFromConfig(r.cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if err != nil {
		return "", err
	}
	if len(out.Stacks) != 1 {
		return "", fmt.Errorf("%d stacks are named %s", len(out.Stacks), stack)
	}
	values := map[string]string{}
	for _, o := range out.Stacks[0].Outputs {
		values[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	file = filepath.Join(r.dir, "outputs.json")
	return file, os.WriteFile(file, text, 0o600)
}
