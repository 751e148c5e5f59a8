package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

// number is the account of the emulators: LocalStack takes an access key of twelve digits for one, and moto has this one.
const number = "123456789012"

// fakeAWS is emulators in AWS's place, and clients of theirs without a guard.
type fakeAWS struct {
	env []string
	sqs *sqs.Client
	ddb *dynamodb.Client
	s3  *s3.Client
	cfn *cloudformation.Client
}

// newFakeAWS returns the emulators that the URLs name. The environment has no credentials but those that mean nothing, and
// no address of AWS's.
func newFakeAWS(sqsURL, ddbURL, otherURL string) *fakeAWS {
	f := &fakeAWS{}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "SQSONCE_AWS_") && !strings.HasPrefix(v, "YES=") {
			f.env = append(f.env, v)
		}
	}
	f.env = append(f.env, "AWS_ENDPOINT_URL="+otherURL, "AWS_ENDPOINT_URL_SQS="+sqsURL, "AWS_ENDPOINT_URL_DYNAMODB="+ddbURL,
		"AWS_ACCESS_KEY_ID="+number, "AWS_SECRET_ACCESS_KEY=fake", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "SQSONCE_AWS_ACCOUNT="+number)
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider(number, "fake", "")}
	f.sqs = sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = &sqsURL })
	f.ddb = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &ddbURL })
	f.s3 = s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = &otherURL, true })
	f.cfn = cloudformation.NewFromConfig(cfg, func(o *cloudformation.Options) { o.BaseEndpoint = &otherURL })
	return f
}

// allKinds is LocalStack for SQS, dynoxide for DynamoDB, and moto for the rest.
func allKinds(t *testing.T) *fakeAWS {
	return newFakeAWS(testserver.LocalStack.Shared(t).URL, testserver.Dynoxide.Shared(t).URL, testserver.Moto.Shared(t).URL)
}

// motoOnly is one moto, whose stacks create queues and tables.
func motoOnly(t *testing.T) *fakeAWS {
	url := testserver.Moto.Shared(t).URL
	return newFakeAWS(url, url, url)
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fakeAWS) queue(t *testing.T, name string) {
	t.Helper()
	_, err := f.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	ok(t, err)
}

func (f *fakeAWS) table(t *testing.T, name string, protected bool) {
	t.Helper()
	_, err := f.ddb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: ddbtypes.BillingModePayPerRequest, DeletionProtectionEnabled: &protected,
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
	})
	ok(t, err)
}

func (f *fakeAWS) bucket(t *testing.T, name string) {
	t.Helper()
	_, err := f.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	ok(t, err)
	_, err = f.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &name, Key: aws.String("a/b c"), Body: strings.NewReader("x")})
	ok(t, err)
}

func (f *fakeAWS) stack(t *testing.T, name, template string) {
	t.Helper()
	_, err := f.cfn.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &template})
	ok(t, err)
}

// list returns the names of everything that matches, with its kind, sorted. It does not use the code under test.
func (f *fakeAWS) list(t *testing.T, match func(name string) bool) (found []string) {
	t.Helper()
	add := func(kind, name string) {
		if match(name) {
			found = append(found, kind+" "+name)
		}
	}
	queues, err := f.sqs.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	ok(t, err)
	for _, u := range queues.QueueUrls {
		add("queue", u[strings.LastIndexByte(u, '/')+1:])
	}
	for pages := dynamodb.NewListTablesPaginator(f.ddb, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		ok(t, err)
		for _, name := range page.TableNames {
			add("table", name)
		}
	}
	buckets, err := f.s3.ListBuckets(t.Context(), &s3.ListBucketsInput{})
	ok(t, err)
	for _, b := range buckets.Buckets {
		add("bucket", *b.Name)
	}
	stacks, err := f.cfn.ListStacks(t.Context(), &cloudformation.ListStacksInput{})
	ok(t, err)
	for _, s := range stacks.StackSummaries {
		if s.StackStatus != "DELETE_COMPLETE" {
			add("stack", *s.StackName)
		}
	}
	slices.Sort(found)
	return found
}

// tagged expects each table of the run to have its tag.
func (f *fakeAWS) tagged(t *testing.T, prefix string) {
	t.Helper()
	tables := f.list(t, ofPrefix(prefix))
	if len(tables) == 0 {
		t.Error("the killed run has left nothing")
	}
	for _, table := range tables {
		name := strings.TrimPrefix(table, "table ")
		d, err := f.ddb.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		ok(t, err)
		out, err := f.ddb.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: d.Table.TableArn})
		if err != nil || len(out.Tags) != 1 || *out.Tags[0].Key != "sqsonce-aws" || *out.Tags[0].Value != prefix {
			t.Errorf("tags of %s: %v, error %v", table, out, err)
		}
	}
}

func ofPrefix(prefix string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, prefix) }
}

// started is a running command.
type started struct {
	cmd    *exec.Cmd
	report string
	ended  chan error

	mu  sync.Mutex
	out bytes.Buffer
}

func (s *started) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *started) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

func (f *fakeAWS) start(t *testing.T, answer io.Reader, args ...string) *started {
	t.Helper()
	file, err := os.Executable()
	ok(t, err)
	s := &started{report: filepath.Join(t.TempDir(), "report.md"), ended: make(chan error, 1)}
	s.cmd = exec.Command(file, append([]string{"-quick", "-report", s.report}, args...)...)
	s.cmd.Env, s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = append(slices.Clone(f.env), isCommand+"=1", "TMPDIR="+t.TempDir()), answer, s, s
	ok(t, s.cmd.Start())
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // where the test has failed
	return s
}

func (f *fakeAWS) run(t *testing.T, answer string, args ...string) (out, report string, err error) {
	t.Helper()
	s := f.start(t, strings.NewReader(answer), args...)
	err = <-s.ended
	text, _ := os.ReadFile(s.report) // there is none where nothing was run
	return s.output(), string(text), err
}

var prefixLine = regexp.MustCompile(`prefix of all names (sqsonce-aws-[0-9a-f]{8}-)`)

// prefixOf returns the prefix that a run has printed.
func prefixOf(t *testing.T, out string) string {
	t.Helper()
	m := prefixLine.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no prefix in\n%s", out)
	}
	return m[1]
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// The whole run: what the emulators can do is run, what they cannot is skipped aloud, and nothing is left.
func TestRun(t *testing.T) {
	t.Parallel()
	f := allKinds(t)
	f.queue(t, "foreign-run")
	f.queue(t, "sqsonce-aws-foreign-run")
	f.table(t, "foreign-run", false)
	before := f.list(t, func(name string) bool { return strings.HasSuffix(name, "foreign-run") })
	out, report, err := f.run(t, "yes\n")
	if err == nil || !strings.Contains(out, "cases differ") {
		t.Errorf("got error %v, want one: the emulators differ\n%s", err, out)
	}
	prefix := prefixOf(t, out)
	for _, want := range []string{
		"An estimate: at most", "go on?", "demo: SKIPPED: it needs functions", "everything with the prefix is deleted",
		"smoke: 4 cases as expected, 0 differ", "cases as expected, 0 differ, 5 not run\noutbox", "cases as expected, 0 differ, 12 not run\nsmoke",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in the output", want)
		}
	}
	for _, want := range []string{
		"**This was not AWS:**", "| demo | - | - | **skipped** | |",
		"### TestSQS/visibility/more_than_12_h_refused\n", // known_test.go of sqstest: LocalStack
		"### TestDynamoDB/ttl/disabled_already\n",         // and of ddbtest: dynoxide
		"want code InvalidParameterValue", "Not run, since: ",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("want %q in the report", want)
		}
	}
	// dynoxide's ARNs are of another account: the guard has stopped the requests with one, and no other.
	if n, arn := strings.Count(report, "was not sent"), strings.Count(report, "was not sent: arn:aws:dynamodb:dynoxide"); n == 0 || n != arn {
		t.Errorf("%d requests were not sent, %d of them with an ARN of dynoxide; want these alone", n, arn)
	}
	for _, p := range allParts {
		estimated := p.load.sqs + p.load.writes + p.load.reads
		if m := regexp.MustCompile(`\| ` + p.name + ` \|.*\| (.*) \|`).FindStringSubmatch(report); m == nil || requests(t, m[1]) > estimated {
			t.Errorf("%s: sent %q, the estimate has %.0f requests and units", p.name, m, estimated)
		}
	}
	for _, never := range []string{number, "### TestStore/", "### TestSQS\n"} {
		if strings.Contains(report, never) {
			t.Errorf("want no %q in the report", never)
		}
	}
	if left := f.list(t, ofPrefix(prefix)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if after := f.list(t, func(name string) bool { return strings.HasSuffix(name, "foreign-run") }); !slices.Equal(before, after) {
		t.Errorf("resources without the prefix: %v, before %v", after, before)
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, report)
	}
}

// requests returns the sum of the numbers in a list of services with their requests.
func requests(t *testing.T, list string) (sum float64) {
	for _, n := range regexp.MustCompile(`\d+$|\d+,`).FindAllString(list, -1) {
		f, err := strconv.ParseFloat(strings.TrimSuffix(n, ","), 64)
		ok(t, err)
		sum += f
	}
	return sum
}

// A run does nothing without a yes, in another account, or without its settings.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f := motoOnly(t)
	for _, tt := range []struct{ what, answer, variable, want string }{
		{"no", "no\n", "", "nothing was done"},
		{"no answer", "", "", "nothing was done"},
		{"another account", "yes\n", "SQSONCE_AWS_ACCOUNT=999999999999", "credentials are of account 123456789012"},
		{"no account", "yes\n", "SQSONCE_AWS_ACCOUNT=", "SQSONCE_AWS_ACCOUNT"},
		{"no region", "yes\n", "AWS_REGION=", "AWS_REGION"},
	} {
		for _, args := range [][]string{{"-parts", "sqs"}, {"-clean"}} {
			one := *f
			one.env = append(slices.Clone(f.env), tt.variable)
			if tt.variable == "" {
				f.queue(t, "sqsonce-aws-00000001-left") // else there is nothing to ask about
			}
			out, report, err := one.run(t, tt.answer, args...)
			if err == nil || !strings.Contains(out, tt.want) || report != "" {
				t.Errorf("%s %v: error %v, report %q\n%s", tt.what, args, err, report, out)
			}
			if m := prefixLine.FindStringSubmatch(out); m != nil {
				if made := f.list(t, ofPrefix(m[1])); len(made) > 0 {
					t.Errorf("%s %v: created %v", tt.what, args, made)
				}
			}
		}
	}
	if left := f.list(t, ofPrefix("sqsonce-aws-00000001-")); len(left) != 1 {
		t.Errorf("after refusals: %v, want the queue", left)
	}
}

// A stop of make reaches the program that it has started: make waits for it, and nothing is left running.
func TestMakeIsStopped(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	f := motoOnly(t)
	read, answer := io.Pipe() // without an answer
	s := &started{ended: make(chan error, 1)}
	s.cmd = exec.Command("make", "aws", "BIN="+t.TempDir(), "ARGS=-parts sqs")
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = repository, f.env, read, s, s
	ok(t, s.cmd.Start())
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	eventually(t, "the question", func() bool { return strings.Contains(s.output(), "go on?") })
	ok(t, s.cmd.Process.Signal(syscall.SIGTERM))
	eventually(t, "the program's answer", func() bool { return strings.Contains(s.output(), "interrupted: nothing was done") })
	ok(t, answer.Close())
	if err := <-s.ended; err == nil {
		t.Error("make ended with status 0")
	}
}

// An interrupt ends the tests, and what they have created is deleted.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	f := allKinds(t)
	s := f.start(t, strings.NewReader("yes\n"), "-parts", "sqs,dynamodb")
	eventually(t, "a queue of the run", func() bool {
		return prefixLine.MatchString(s.output()) && len(f.list(t, ofPrefix(prefixOf(t, s.output())))) > 0
	})
	ok(t, s.cmd.Process.Signal(syscall.SIGHUP))
	ok(t, s.cmd.Process.Signal(os.Interrupt)) // as one whose group gets what make passes on too
	if err := <-s.ended; err == nil {
		t.Error("an interrupted run ended with status 0")
	}
	out := s.output()
	if !strings.Contains(out, "interrupted:") || strings.Contains(out, "dynamodb ...") || !strings.Contains(out, "; did not run to its end:") {
		t.Errorf("want the interrupt, and no further part, in\n%s", out)
	}
	if left := f.list(t, ofPrefix(prefixOf(t, out))); len(left) > 0 {
		t.Errorf("left: %v\n%s", left, out)
	}
	text, err := os.ReadFile(s.report)
	ok(t, err)
	for _, want := range []string{"**It was interrupted.**", "| sqs |", "Did not run to its end:", "| dynamodb | - | - | **skipped** | |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("want %q in the report:\n%s", want, text)
		}
	}
}

const template = `{"Resources": {
	"Kept": {"Type": "AWS::SQS::Queue", "DeletionPolicy": "Retain", "Properties": {"QueueName": {"Fn::Sub": "${AWS::StackName}-orders-dlq"}}},
	"Gone": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Sub": "${AWS::StackName}-orders"}}}
}}`

// A run is killed in the middle, and more is left as by a run whose stack could not be deleted whole. make aws-clean deletes
// it all, and nothing else.
func TestKilledAndCleaned(t *testing.T) {
	t.Parallel()
	f := motoOnly(t)
	s := f.start(t, strings.NewReader("yes\n"), "-parts", "dynamodb,sqs")
	eventually(t, "a table of the run", func() bool {
		return prefixLine.MatchString(s.output()) && len(f.list(t, ofPrefix(prefixOf(t, s.output())))) > 0
	})
	ok(t, s.cmd.Process.Kill())
	<-s.ended
	prefix := prefixOf(t, s.output())
	// The tests end with the run: what they create now would be left by the deletion.
	for previous, same := []string{"none"}, 0; same < 20; time.Sleep(100 * time.Millisecond) {
		now := f.list(t, ofPrefix(prefix))
		if same++; !slices.Equal(previous, now) {
			previous, same = now, 0
		}
	}
	f.tagged(t, prefix)
	f.table(t, prefix+"demo-DedupTable-X", true)
	f.bucket(t, prefix+"artifacts")
	f.stack(t, prefix+"demo", template)
	f.table(t, "foreign-clean", true)
	f.queue(t, "foreign-clean")
	f.queue(t, "sqsonce-aws-foreign-clean")
	f.queue(t, "sqsonce-aws-0000000-clean") // seven digits
	f.bucket(t, "foreign-clean")
	f.stack(t, "foreign-clean-stack", template)
	const other = "sqsonce-aws-00000002-"
	f.queue(t, other+"clean")
	stays := func(name string) bool { return strings.Contains(name, "-clean") && !strings.HasPrefix(name, other) }
	before := f.list(t, stays)
	if len(before) != 8 {
		t.Fatalf("before: %v", before)
	}

	out, _, err := f.run(t, "yes\n", "-clean", "-prefix", prefix)
	if err != nil || !strings.Contains(out, "stack "+prefix+"demo") || !strings.Contains(out, "deleting table "+prefix+"demo-DedupTable-X") {
		t.Errorf("error %v\n%s", err, out)
	}
	if left := f.list(t, ofPrefix(prefix)); len(left) > 0 {
		t.Errorf("left: %v\n%s", left, out)
	}
	if left := f.list(t, ofPrefix(other)); len(left) != 1 {
		t.Errorf("of another run: %v, want its queue\n%s", left, out)
	}
	if out, _, err := f.run(t, "", "-clean", "-yes", "-prefix", other); err != nil {
		t.Errorf("error %v\n%s", err, out)
	}
	if left := f.list(t, ofPrefix(other)); len(left) > 0 {
		t.Errorf("left of the other run: %v", left)
	}
	if after := f.list(t, stays); !slices.Equal(before, after) {
		t.Errorf("without the prefix: %v, before %v", after, before)
	}
}

// Without -prefix the leftovers of all runs are deleted. Not parallel: other tests have runs on the same emulator.
func TestCleanOfAllRuns(t *testing.T) {
	f := motoOnly(t)
	for _, name := range []string{"sqsonce-aws-00000003-a", "sqsonce-aws-00000004-b", "foreign-all", "sqsonce-aws-foreign-all"} {
		f.queue(t, name)
		f.table(t, name, true)
	}
	f.stack(t, "sqsonce-aws-00000003-demo", template)
	read, answer := io.Pipe()
	s := f.start(t, read, "-clean")
	eventually(t, "the question", func() bool { return strings.Contains(s.output(), "go on?") })
	for _, want := range []string{"(this is not AWS: AWS_ENDPOINT_URL=http", "stack sqsonce-aws-00000003-demo", "queue sqsonce-aws-00000003-a", "table sqsonce-aws-00000004-b"} {
		if !strings.Contains(s.output(), want) {
			t.Errorf("want %q before the question, in\n%s", want, s.output())
		}
	}
	f.queue(t, "sqsonce-aws-00000003-later")
	f.queue(t, "sqsonce-aws-00000005-later") // of a run that was not listed
	_, err := io.WriteString(answer, "yes\n")
	ok(t, err)
	ok(t, answer.Close())
	if err := <-s.ended; err != nil {
		t.Errorf("error %v\n%s", err, s.output())
	}
	if got := f.list(t, ofPrefix("sqsonce-aws-0000000")); !slices.Equal(got, []string{"queue sqsonce-aws-00000005-later"}) {
		t.Errorf("left %v, want the queue of the run that was not listed\n%s", got, s.output())
	}
	if out, _, err := f.run(t, "yes\n", "-clean"); err != nil {
		t.Errorf("error %v\n%s", err, out)
	}
	want := []string{"queue foreign-all", "queue sqsonce-aws-foreign-all", "table foreign-all", "table sqsonce-aws-foreign-all"}
	if got := f.list(t, func(string) bool { return true }); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if out, _, err := f.run(t, "", "-clean"); err != nil || !strings.Contains(out, "nothing is left in account "+number+", region us-east-1 (this is not AWS: ") {
		t.Errorf("a second time: error %v\n%s", err, out)
	}
}
