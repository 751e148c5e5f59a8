package orders

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
)

// checkDeploy checks the relations in and between the files of deploy/, which cfn-lint and the schemas do not check. The
// files are by path from the root of the repository.
func checkDeploy(files map[string]string, ttlAttribute string) []string {
	c := &deployChecker{files: files}
	if err := yaml.Unmarshal([]byte(files["deploy/resources.yaml"]), &c.template); err != nil {
		c.problem("%v", err)
	}
	c.resources(ttlAttribute)
	c.ecs(c.flat("deploy/ecs.yaml"))
	c.kubernetes(c.flat("deploy/kubernetes/worker.yaml"), c.flat("deploy/kubernetes/keda.yaml"))
	c.unit()
	c.image("deploy/Dockerfile")
	c.image("deploy/localaws.Dockerfile")
	return c.problems
}

type deployChecker struct {
	checker
	files map[string]string
}

func (c *deployChecker) resources(ttlAttribute string) {
	c.table("DedupTable", ttlAttribute)
	q := c.Resources["OrdersQueue"].Properties
	c.redrive("OrdersQueue", q)
	c.alarms()
	names := map[string]string{"OrdersQueue": "orders", "OrdersDLQ": "orders-dlq", "DedupTable": "dedup", "LedgerTable": "ledger"}
	var got []string
	for _, s := range c.Resources["WorkerPolicy"].Properties.PolicyDocument.Statement {
		for _, action := range s.Action {
			for _, of := range s.Resource {
				got = append(got, names[resource(of)]+" "+action)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, workerActions) {
		c.problem("WorkerPolicy: allows %q, want %q", got, workerActions)
	}
}

// Seconds. The package comment of sqsworker has the arithmetic of a stop.
const (
	afterStop       = 2 + 7  // StopGrace, and what follows the handlers
	leastStop       = 15 + 5 // Wait, and 5 s
	longestGrace    = 120    // of Fargate
	leastVisibility = 5      // the Date of a receipt has whole seconds
	healthTimeout   = 3      // of the worker's -health
)

// fleet is the numbers of a platform's workers, in seconds where it is a time.
type fleet struct {
	where                      string
	env                        map[string]string
	grace                      any // from SIGTERM to SIGKILL
	handler, longest, accepted any // a handler's mean and longest run time; the wait in a backlog
	target                     any // messages for each worker
	countsInFlight             bool
	most                       any // workers
}

func (c *deployChecker) fleet(f fleet) {
	for name := range f.env { // also finds credentials, which belong to a role
		if name != "AWS_REGION" && !strings.Contains(c.files["examples/orders/worker/main.go"], "//\t"+name+" ") {
			c.problem("%s: the worker has no environment variable %s", f.where, name)
		}
	}
	grace, longest := c.number(f.where, f.grace), c.number(f.where, f.longest)
	stop, visibility := c.seconds(f, "STOP_TIMEOUT"), c.seconds(f, "VISIBILITY")
	if grace < stop+afterStop || grace > longestGrace {
		c.problem("%s: SIGKILL comes after %d s, want STOP_TIMEOUT %d + %d, to %d", f.where, grace, stop, afterStop, longestGrace)
	}
	if stop < leastStop {
		c.problem("%s: STOP_TIMEOUT %d is below a poll's %d", f.where, stop, leastStop)
	}
	if stop < longest {
		c.problem("%s: STOP_TIMEOUT %d is below the longest handler's %d", f.where, stop, longest)
	}
	if of := c.Resources["OrdersQueue"].Properties.VisibilityTimeout; visibility != of {
		c.problem("%s: VISIBILITY is %d s, want the queue's %d", f.where, visibility, of)
	}
	if visibility < leastVisibility {
		c.problem("%s: VISIBILITY is %d s, want at least %d", f.where, visibility, leastVisibility)
	}
	target, concurrency := c.number(f.where, f.target), c.number(f.where, f.env["CONCURRENCY"])
	handler, accepted := c.number(f.where, f.handler), c.number(f.where, f.accepted)
	inFlight := 2*concurrency + 10 // sqsworker's default
	want := concurrency * accepted / max(handler, 1)
	if f.countsInFlight {
		want = max(want, inFlight) // one busy worker without a backlog must not ask for another
	}
	if target != want {
		c.problem("%s: the scaling target is %d, want %d: CONCURRENCY %d x %d s accepted / %d s for a handler", f.where, target, want, concurrency, accepted, handler)
	}
	if most := c.number(f.where, f.most); most*inFlight > 120_000 {
		c.problem("%s: %d workers with %d in flight each are more than SQS allows", f.where, most, inFlight)
	}
}

// number returns a positive number, also of a string.
func (c *deployChecker) number(where string, of any) int {
	n, err := strconv.Atoi(fmt.Sprint(of))
	if err != nil || n <= 0 {
		c.problem("%s: got %v, want a number", where, of)
	}
	return n
}

func (c *deployChecker) seconds(f fleet, name string) int {
	d, err := time.ParseDuration(f.env[name])
	if err != nil {
		c.problem("%s: %s: %v", f.where, name, err)
	}
	return int(d / time.Second)
}

func (c *deployChecker) ecs(t map[string]any) {
	const where, container = "deploy/ecs.yaml", "Resources.TaskDefinition.Properties.ContainerDefinitions.0"
	const scaling = "Resources.BacklogPerTask.Properties.TargetTrackingScalingPolicyConfiguration"
	env := environment(t, container+".Environment", "Name", "Value")
	c.fleet(fleet{
		where: where, env: env, grace: t[container+".StopTimeout"], most: t["Parameters.MaxTasks.Default"], target: t[scaling+".TargetValue"],
		handler: t["Metadata.Worker.HandlerSeconds"], longest: t["Metadata.Worker.LongestHandlerSeconds"], accepted: t["Metadata.Worker.AcceptedSeconds"],
	})
	c.want(where, t, map[string]any{
		container + ".HealthCheck.Command.3": "http://" + env["HEALTH_ADDR"] + "/live",
		container + ".User":                  c.user(),
		"Resources.TaskRole.Properties.ManagedPolicyArns.0.Fn::ImportValue": "${ResourcesStack}-WorkerPolicyArn",
		"Resources.Service.Properties.DesiredCount":                         nil, // each deployment would undo the scaling

		"Resources.TaskRole.Properties.Policies.0.PolicyDocument.Statement.0.Action":   "ecs:UpdateTaskProtection",
		"Resources.TaskRole.Properties.Policies.0.PolicyDocument.Statement.0.Resource": "arn:${AWS::Partition}:ecs:${AWS::Region}:${AWS::AccountId}:task/${Cluster}/*",
		"Resources.TaskRole.Properties.Policies.0.PolicyDocument.Statement.1.Action":   nil,
		"Resources.Service.Properties.DeploymentConfiguration.MaximumPercent":          200, // old tasks stay until they are unprotected
	})
	const longestDeployment, most = 3 * 60 * 60, 60 * 60 // CloudFormation's, and the default of ecsprotect.Options.Most
	if longest := c.number(where, t["Metadata.Worker.LongestHandlerSeconds"]); env["PROTECT"] == "true" && most+longest >= longestDeployment {
		c.problem("%s: a deployment may wait %d s for protected tasks, CloudFormation rolls it back after %d", where, most+longest, longestDeployment)
	}
	for path := range t {
		more, isRole := strings.CutPrefix(path, "Resources.TaskRole.Properties.")
		if isRole && !strings.HasPrefix(more, "AssumeRolePolicyDocument.") && !strings.HasPrefix(more, "Policies.0.") && more != "ManagedPolicyArns.0.Fn::ImportValue" {
			c.problem("%s: the task role has more than the WorkerPolicy and protect-itself: %s", where, more)
		}
	}
	if timeout := c.number(where, t[container+".HealthCheck.Timeout"]); timeout <= healthTimeout {
		c.problem("%s: HealthCheck.Timeout %d is not above the program's own, %d", where, timeout, healthTimeout)
	}
	for _, name := range regexp.MustCompile(`\$\{ResourcesStack\}(-\w+)`).FindAllStringSubmatch(c.files[where], -1) {
		if !strings.Contains(c.files["deploy/resources.yaml"], `Export: {Name: !Sub "${AWS::StackName}`+name[1]+`"}`) {
			c.problem("%s imports %s, which deploy/resources.yaml does not export", where, name[1])
		}
	}
}

func (c *deployChecker) kubernetes(w, keda map[string]any) {
	const where, pod, container = "deploy/kubernetes", "Deployment.spec.template.spec", "Deployment.spec.template.spec.containers.0"
	const trigger = "ScaledObject.spec.triggers.0"
	env := environment(w, container+".env", "name", "value")
	c.fleet(fleet{
		where: where, env: env, grace: w[pod+".terminationGracePeriodSeconds"], most: keda["ScaledObject.spec.maxReplicaCount"], target: keda[trigger+".metadata.queueLength"],
		handler: keda["ScaledObject.metadata.annotations.orders/handler-seconds"], longest: keda["ScaledObject.metadata.annotations.orders/longest-handler-seconds"],
		accepted: keda["ScaledObject.metadata.annotations.orders/accepted-seconds"], countsInFlight: true,
	})
	c.want(where, keda, map[string]any{
		"ScaledObject.spec.scaleTargetRef.name": w["Deployment.metadata.name"],
		trigger + ".authenticationRef.name":     keda["TriggerAuthentication.metadata.name"],
		trigger + ".metadata.queueURLFromEnv":   "QUEUE_URL",
		trigger + ".metadata.awsRegion":         env["AWS_REGION"],
	})
	user, group, _ := strings.Cut(c.user(), ":")
	c.want(where, w, map[string]any{
		pod + ".serviceAccountName":                w["ServiceAccount.metadata.name"],
		container + ".livenessProbe.httpGet.port":  w[container+".ports.0.name"],
		container + ".readinessProbe.httpGet.port": w[container+".ports.0.name"],
		container + ".ports.0.containerPort":       c.number(where, strings.TrimPrefix(env["HEALTH_ADDR"], ":")),
		pod + ".securityContext.runAsUser":         c.number(where, user),
		pod + ".securityContext.runAsGroup":        c.number(where, group),
		"Deployment.spec.replicas":                 nil, // each apply would undo the scaling
	})
	if !strings.HasPrefix(env["QUEUE_URL"], "https://sqs."+env["AWS_REGION"]+".") {
		c.problem("%s: QUEUE_URL is not in AWS_REGION, %s", where, env["AWS_REGION"])
	}
}

// want compares values by path; nil is one that must not be there.
func (c *deployChecker) want(where string, got, want map[string]any) {
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			c.problem("%s: %s is %v, want %v", where, path, got[path], want[path])
		}
	}
}

// image checks the Dockerfile of an image that is built from this tree: its Go, and that what it copies and the folders that it builds in exist.
func (c *deployChecker) image(file string) {
	text := c.files[file]
	if m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(c.files["go.mod"]); m == nil || !strings.Contains(text, " golang:"+m[1]+" ") {
		c.problem("%s does not build with the Go version of go.mod, %v", file, m)
	}
	copies := regexp.MustCompile(`(?m)^COPY (?:--from=(\w+) )?(.+) \S+$`).FindAllStringSubmatch(text, -1)
	if len(copies) == 0 {
		c.problem("%s: no COPY", file)
	}
	for _, m := range copies {
		for _, source := range strings.Fields(m[2]) {
			_, err := os.Stat("../../" + source)
			if m[1] == "" && err != nil || m[1] != "" && !(strings.Contains(text, " AS "+m[1]+"\n") && strings.Contains(text, " -o "+source+" ")) {
				c.problem("%s: %s: there is no %s", file, m[0], source)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^RUN cd (\S+)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat("../../" + m[1]); err != nil {
			c.problem("%s: %v", file, err)
		}
	}
}

// user returns the image's user and group.
func (c *deployChecker) user() string {
	if m := regexp.MustCompile(`(?m)^USER ([1-9]\d*:[1-9]\d*)$`).FindStringSubmatch(c.files["deploy/Dockerfile"]); m != nil {
		return m[1]
	}
	c.problem("deploy/Dockerfile: no USER with numbers, or root")
	return ""
}

// unit checks the stop of the systemd unit in docs/deploy.md.
func (c *deployChecker) unit() {
	var seconds [2]int
	for i, name := range []string{"TimeoutStopSec=", "Environment=STOP_TIMEOUT="} {
		if m := regexp.MustCompile(`(?m)^` + name + `(\d+)s$`).FindStringSubmatch(c.files["docs/deploy.md"]); m != nil {
			seconds[i] = c.number("docs/deploy.md", m[1])
		}
	}
	if grace, stop := seconds[0], seconds[1]; stop < leastStop || grace < stop+afterStop {
		c.problem("docs/deploy.md: TimeoutStopSec of %d s is below STOP_TIMEOUT %d + %d", grace, stop, afterStop)
	}
}

// flat returns a file's values by their paths, such as Resources.Queue.Type; of several documents, as in Kubernetes, with
// the kind before. A tag (!Ref X, !GetAtt X.Arn) is dropped, and the text stays.
func (c *deployChecker) flat(file string) map[string]any {
	values := map[string]any{}
	d := yaml.NewDecoder(bytes.NewReader([]byte(c.files[file])))
	for {
		var document map[string]any
		if err := d.Decode(&document); errors.Is(err, io.EOF) {
			return values
		} else if err != nil {
			c.problem("%s: %v", file, err)
			return values
		}
		kind, _ := document["kind"].(string)
		flatten(values, kind, document)
	}
}

func flatten(into map[string]any, path string, node any) {
	switch node := node.(type) {
	case map[string]any:
		for name, value := range node {
			flatten(into, strings.TrimPrefix(path+"."+name, "."), value)
		}
	case []any:
		for i, value := range node {
			flatten(into, fmt.Sprint(path, ".", i), value)
		}
	default:
		into[path] = node
	}
}

// environment returns the variables in a list of names and values.
func environment(values map[string]any, path, name, value string) map[string]string {
	env := map[string]string{}
	for i := 0; values[fmt.Sprint(path, ".", i, ".", name)] != nil; i++ {
		one := fmt.Sprint(path, ".", i, ".")
		env[fmt.Sprint(values[one+name])] = fmt.Sprint(values[one+value])
	}
	return env
}

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
		"deploy/resources.yaml", "deploy/ecs.yaml", "deploy/kubernetes/worker.yaml", "deploy/kubernetes/keda.yaml", "deploy/Dockerfile", "deploy/localaws.Dockerfile",
		"docs/deploy.md", "examples/orders/worker/main.go", "go.mod",
	} {
		text := must.Get(os.ReadFile("../../" + file))(t)
		files[file] = string(text)
	}
	return files
}
