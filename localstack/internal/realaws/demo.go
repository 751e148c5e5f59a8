package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/sqsonce/sqsonce/localstack/internal/realaws/account"
)

// repository is where `make aws` starts the program: in the folder of its module.
const repository = "../../.."

// demo deploys template.yaml by SAM as a stack of its own, and runs the demo on it.
func (r *runner) demo(ctx context.Context, res *result) error {
	if set := r.account.Endpoints; len(set) > 0 {
		res.skipped = "it needs functions that AWS runs, and " + strings.Join(set, ", ") + " is not AWS"
		return nil
	}
	sam, err := findSAM()
	if err != nil {
		return err
	}
	outputs, err := r.deploy(ctx, sam)
	if err != nil {
		return err
	}
	return r.runDemo(ctx, outputs, res)
}

// checkSAM fails if the parts need SAM, and it is missing.
func checkSAM(parts []part) error {
	set, err := account.Endpoints()
	if err != nil || len(set) > 0 || !slices.ContainsFunc(parts, func(p part) bool { return p.test == "" }) {
		return err
	}
	if _, err = findSAM(); err != nil {
		return fmt.Errorf("nothing was done: %w, or leave the demo out with -parts", err)
	}
	return nil
}

// findSAM returns SAM's program: that of the environment variable SAM, or the one of the user's path.
func findSAM() (string, error) {
	name := os.Getenv("SAM")
	if name == "" {
		name = "sam"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the demo is deployed with AWS SAM's command line: install aws-sam-cli, or set SAM to its path: %w", err)
	}
	return path, nil
}

// deploy returns the file with the outputs of the stack.
func (r *runner) deploy(ctx context.Context, sam string) (outputs string, err error) {
	prefix := r.account.Guard.Prefix
	stack, bucket := prefix+"demo", prefix+"artifacts"
	if err := r.createBucket(ctx, bucket); err != nil {
		return "", err
	}
	env, err := r.environment(ctx)
	if err != nil {
		return "", err
	}
	built := filepath.Join(r.dir, "build")
	for _, args := range [][]string{
		{"build", "--template", repository + "/template.yaml", "--build-dir", built, "--cache-dir", filepath.Join(r.dir, "cache")},
		// A bucket of the run: by itself SAM makes a stack that it keeps. No samconfig.toml: it could name another stack.
		{"deploy", "--template-file", filepath.Join(built, "template.yaml"), "--stack-name", stack, "--s3-bucket", bucket,
			"--region", r.account.Region, "--capabilities", "CAPABILITY_IAM", "--parameter-overrides", "Keep=false",
			"--tags", account.TagKey + "=" + prefix, "--config-file", filepath.Join(r.dir, "none.toml"), "--no-confirm-changeset", "--no-progressbar"},
	} {
		cmd := exec.CommandContext(ctx, sam, args...)
		cmd.Env = append(env, "SAM_CLI_TELEMETRY=0")
		if err := r.command(cmd); err != nil {
			return "", err
		}
	}
	return r.writeOutputs(ctx, stack)
}

// createBucket creates the bucket of the functions' code.
func (r *runner) createBucket(ctx context.Context, name string) error {
	in := &s3.CreateBucketInput{Bucket: &name}
	if r.account.Region != "us-east-1" { // which S3 does not take as a constraint
		in.CreateBucketConfiguration = &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(r.account.Region)}
	}
	client := newS3(r.account)
	if _, err := client.CreateBucket(ctx, in); err != nil {
		return err
	}
	_, err := client.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{
		Bucket: &name, ExpectedBucketOwner: &r.account.Number,
		Tagging: &s3types.Tagging{TagSet: []s3types.Tag{{Key: aws.String(account.TagKey), Value: &r.account.Guard.Prefix}}},
	})
	return err
}

// writeOutputs writes the outputs of the stack to a file. Queues and tables in them must be the run's.
func (r *runner) writeOutputs(ctx context.Context, stack string) (file string, err error) {
	out, err := cloudformation.NewFromConfig(r.account.Config).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if err != nil {
		return "", err
	}
	if len(out.Stacks) != 1 {
		return "", fmt.Errorf("%d stacks are named %s", len(out.Stacks), stack)
	}
	values := map[string]string{}
	for _, o := range out.Stacks[0].Outputs {
		key, value := aws.ToString(o.OutputKey), aws.ToString(o.OutputValue)
		name := value[strings.LastIndexByte(value, '/')+1:]
		if (strings.HasSuffix(key, "QueueUrl") || strings.HasSuffix(key, "DLQUrl") || strings.HasSuffix(key, "TableName")) && !r.account.Guard.Mine(name) {
			return "", fmt.Errorf("the stack's output %s is %s, which is not of this run", key, value)
		}
		values[key] = value
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	file = filepath.Join(r.dir, "outputs.json")
	return file, os.WriteFile(file, text, 0o600)
}

// runDemo builds and runs the demo's commands. Its report is the result's only case.
func (r *runner) runDemo(ctx context.Context, outputs string, res *result) error {
	bin := filepath.Join(r.dir, "bin")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin+"/", "./orders/demo", "./orders/publish", "./orders/worker")
	build.Dir = repository + "/examples"
	if err := r.command(build); err != nil {
		return err
	}
	env, err := r.environment(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "demo"))
	interruptible(cmd)
	cmd.Dir = repository + "/examples/orders"
	cmd.Env = append(env, "STACK_OUTPUTS="+outputs, "STORE=", "ORDERS=")
	text, err := cmd.CombinedOutput()
	c := &caseResult{name: "demo", output: string(text)}
	exit, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		c.status = "pass"
	case exit != nil && exit.ExitCode() == 1: // else it was cut
		c.status, err = "fail", nil
	}
	res.cases = append(res.cases, c)
	return err
}
