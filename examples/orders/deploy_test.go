package orders

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
)

const (
	resourcesFile = "deploy/resources.yaml"
	ecsFile       = "deploy/ecs.yaml"
	workerFile    = "deploy/kubernetes/worker.yaml"
	kedaFile      = "deploy/kubernetes/keda.yaml"
	imageFile     = "deploy/Dockerfile"
	deployDoc     = "docs/deploy.md"
	workerDoc     = "examples/orders/worker/main.go"
)

func TestDeploy(t *testing.T) {
	for _, p := range checkDeploy(readDeploy(t), dynamostore.TTLAttribute) {
		t.Error(p)
	}
	if problems := checkDeploy(nil, dynamostore.TTLAttribute); len(problems) < 50 {
		t.Errorf("without files: %d problems, want one for each value: a check that understands nothing finds none", len(problems))
	}
}

func TestDeployCheckFindsBrokenCopies(t *testing.T) {
	good := readDeploy(t)
	for _, tt := range []struct{ name, file, old, broken, want string }{
		{"low maxReceiveCount", resourcesFile, "maxReceiveCount: 5", "maxReceiveCount: 3", "maxReceiveCount"},
		{"shorter retention of the dead-letter queue", resourcesFile, "MessageRetentionPeriod: 1209600", "MessageRetentionPeriod: 345600", "retention"},
		{"no redrive policy", resourcesFile, "      RedrivePolicy:", "      Unrelated:", "maxReceiveCount"},
		{"other TTL attribute", resourcesFile, "AttributeName: expiration", "AttributeName: ttl", "TTL"},
		{"table deleted with the stack", resourcesFile, "DeletionPolicy: Retain", "DeletionPolicy: Delete", "Retain"},
		{"no alarm on the dead-letter queue", resourcesFile, "MetricName: ApproximateNumberOfMessagesVisible", "MetricName: NumberOfMessagesSent", "OrdersDLQAlarm is"},
		{"an action is missing", resourcesFile, "sqs:ChangeMessageVisibility, ", "", "ChangeMessageVisibility"},
		{"one action too many", resourcesFile, "[dynamodb:UpdateItem]", "[dynamodb:UpdateItem, dynamodb:DeleteItem]", "ledger dynamodb:DeleteItem"},
		{"an action on another resource", resourcesFile, "Resource: !GetAtt LedgerTable.Arn", "Resource: !GetAtt DedupTable.Arn", "WorkerPolicy"},
		{"other visibility timeout", resourcesFile, "VisibilityTimeout: 30 ", "VisibilityTimeout: 60 ", "VISIBILITY is 30 s, want the queue's 60"},
		{"an export is missing", resourcesFile, "${AWS::StackName}-QueueUrl", "${AWS::StackName}-Queue", "imports -QueueUrl"},

		{"SIGKILL before the stop has ended", ecsFile, "StopTimeout: 120 ", "StopTimeout: 118 ", "SIGKILL comes after 118"},
		{"longer than Fargate waits", ecsFile, "StopTimeout: 120 ", "StopTimeout: 121 ", "SIGKILL comes after 121"},
		{"stop raised alone", ecsFile, "Value: 110s", "Value: 112s", "SIGKILL"},
		{"stop shorter than a poll", ecsFile, "Value: 110s", "Value: 19s", "below a poll's"},
		{"handlers longer than the stop", ecsFile, "LongestHandlerSeconds: 100", "LongestHandlerSeconds: 111", "longest handler"},
		{"visibility timeout changed alone", ecsFile, "VISIBILITY, Value: 30s", "VISIBILITY, Value: 31s", "VISIBILITY is 31"},
		{"visibility timeout too coarse", ecsFile, "VISIBILITY, Value: 30s", "VISIBILITY, Value: 4s", "want at least 5"},
		{"no unit", ecsFile, "Value: 110s", "Value: 110", "missing unit"},
		{"a misspelt variable", ecsFile, "Name: CONCURRENCY", "Name: CONCURRENT", "no environment variable CONCURRENT"},
		{"a credential", ecsFile, "{Name: CONSUMER, Value: orders}", "{Name: AWS_SECRET_ACCESS_KEY, Value: x}", "AWS_SECRET_ACCESS_KEY"},
		{"health by /ready", ecsFile, "8080/live", "8080/ready", "Command.3"},
		{"health at another port", ecsFile, `Value: "127.0.0.1:8080"`, `Value: "127.0.0.1:8081"`, "Command.3"},
		{"health by a shell", ecsFile, "Command: [CMD,", "Command: [CMD-SHELL,", "Command.0"},
		{"a health check shorter than the program's", ecsFile, "Timeout: 5", "Timeout: 3", "HealthCheck.Timeout 3"},
		{"root", ecsFile, `User: "65532:65532"`, `User: "0:0"`, "User"},
		{"health by another program", ecsFile, "[CMD, /worker,", "[CMD, /bin/curl,", "Command.1"},
		{"health without its flag", ecsFile, "-health,", "-live,", "Command.2"},
		{"one role for both, the other way", ecsFile, "ExecutionRoleArn: !GetAtt ExecutionRole.Arn", "ExecutionRoleArn: !GetAtt TaskRole.Arn", "ExecutionRoleArn"},
		{"no policy for the task", ecsFile, "-WorkerPolicyArn", "-QueueUrl", "ManagedPolicyArns"},
		{"one role for both", ecsFile, "TaskRoleArn: !GetAtt TaskRole.Arn", "TaskRoleArn: !GetAtt ExecutionRole.Arn", "TaskRoleArn"},
		{"another policy for the task", ecsFile, "-WorkerPolicyArn\"}]", "-WorkerPolicyArn\"}, arn:aws:iam::aws:policy/AmazonSQSFullAccess]", "more than the WorkerPolicy"},
		{"another target", ecsFile, "TargetValue: 300", "TargetValue: 200", "scaling target is 200, want 300"},
		{"more slots, old target", ecsFile, `Name: CONCURRENCY, Value: "10"`, `Name: CONCURRENCY, Value: "20"`, "scaling target is 300, want 600"},
		{"slower handlers, old target", ecsFile, "\n    HandlerSeconds: 2", "\n    HandlerSeconds: 3", "scaling target is 300, want 200"},
		{"too many in flight", ecsFile, "Default: 20\n", "Default: 4001\n", "more than SQS allows"},
		{"no task", ecsFile, "MinValue: 1\n    Description: At least", "MinValue: 0\n    Description: At least", "MinTasks"},
		{"backlog of all tasks", ecsFile, "Expression: backlog / tasks", "Expression: backlog", "Expression"},
		{"another count of tasks", ecsFile, "MetricName: RunningTaskCount", "MetricName: DesiredTaskCount", "RunningTaskCount"},
		{"another metric of the queue", ecsFile, "MetricName: ApproximateNumberOfMessagesVisible", "MetricName: NumberOfMessagesSent", "ApproximateNumberOfMessagesVisible"},
		{"another metric of the tasks", ecsFile, "Namespace: ECS/ContainerInsights", "Namespace: AWS/ECS", "ECS/ContainerInsights"},
		{"another name in the expression", ecsFile, "Id: backlog", "Id: visible", "Id is visible"},
		{"another name in the expression", ecsFile, "Id: tasks", "Id: running", "Id is running"},
		{"no result", ecsFile, "ReturnData: true", "ReturnData: false", "ReturnData"},
		{"another setting of the cluster", ecsFile, "Name: containerInsights", "Name: insights", "ClusterSettings"},
		{"no Container Insights", ecsFile, "Value: enabled}]", "Value: disabled}]", "ClusterSettings"},
		{"no circuit breaker", ecsFile, "{Enable: true", "{Enable: false", "Enable"},
		{"no rollback", ecsFile, "Rollback: true", "Rollback: false", "Rollback"},
		{"a deployment that stops workers first", ecsFile, "MinimumHealthyPercent: 100", "MinimumHealthyPercent: 50", "MinimumHealthyPercent"},
		{"a fixed count", ecsFile, "      LaunchType: FARGATE\n", "      LaunchType: FARGATE\n      DesiredCount: 2\n", "DesiredCount"},

		{"SIGKILL before the stop has ended", workerFile, "terminationGracePeriodSeconds: 120", "terminationGracePeriodSeconds: 30", "SIGKILL comes after 30"},
		{"visibility timeout changed alone", workerFile, "value: 30s", "value: 20s", "VISIBILITY is 20"},
		{"liveness by /ready", workerFile, "path: /live", "path: /ready", "livenessProbe"},
		{"readiness by /live", workerFile, "path: /ready", "path: /live", "readinessProbe"},
		{"probes at another port", workerFile, "containerPort: 8080", "containerPort: 8081", "containerPort"},
		{"root", workerFile, "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"},
		{"probe of a port without a name", workerFile, "path: /live, port: probes", "path: /live, port: http", "livenessProbe.httpGet.port"},
		{"probe of a port without a name", workerFile, "path: /ready, port: probes", "path: /ready, port: http", "readinessProbe.httpGet.port"},
		{"a port of another name", workerFile, "{name: probes", "{name: http", "ports.0.name"},
		{"another group", workerFile, "runAsGroup: 65532", "runAsGroup: 0", "runAsGroup"},
		{"privileges", workerFile, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "allowPrivilegeEscalation"},
		{"another user", workerFile, "runAsUser: 65532", "runAsUser: 1000", "runAsUser"},
		{"a writable image", workerFile, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "readOnly"},
		{"capabilities", workerFile, "drop: [ALL]", "drop: [NET_RAW]", "drop"},
		{"a fixed count", workerFile, "spec:\n  selector:", "spec:\n  replicas: 2\n  selector:", "replicas"},
		{"a rollout that stops workers first", workerFile, "maxUnavailable: 0", "maxUnavailable: 1", "maxUnavailable"},
		{"another service account", workerFile, "serviceAccountName: orders-worker", "serviceAccountName: default", "serviceAccountName"},
		{"another region", workerFile, "value: eu-west-1}", "value: us-east-1}", "QUEUE_URL is not in AWS_REGION"},
		{"not YAML", workerFile, "spec:\n", "spec: {\n", "yaml"},
		{"a key twice", workerFile, "  name: orders-worker\n", "  name: orders-worker\n  name: other\n", "already defined"},

		{"another target", kedaFile, `queueLength: "300"`, `queueLength: "5"`, "scaling target is 5, want 300"},
		{"slow handlers, whose target is InFlight", kedaFile, `handler-seconds: "2"`, `handler-seconds: "60"`, "want 30"},
		{"slow handlers, whose target is not InFlight", ecsFile, "\n    HandlerSeconds: 2", "\n    HandlerSeconds: 60", "want 10"},
		{"visible messages only", kedaFile, `scaleOnInFlight: "true"`, `scaleOnInFlight: "false"`, "scaleOnInFlight"},
		{"another region", kedaFile, "awsRegion: eu-west-1", "awsRegion: us-east-1", "awsRegion"},
		{"another queue", kedaFile, "FromEnv: QUEUE_URL", "FromEnv: QUEUE", "queueURLFromEnv"},
		{"another trigger", kedaFile, "type: aws-sqs-queue", "type: aws-sqs", "aws-sqs-queue"},
		{"another provider", kedaFile, "provider: aws}", "provider: azure}", "provider"},
		{"another version", kedaFile, "v1alpha1\nkind: TriggerAuthentication", "v1\nkind: TriggerAuthentication", "apiVersion"},
		{"another version", kedaFile, "v1alpha1\nkind: ScaledObject", "v1\nkind: ScaledObject", "apiVersion"},
		{"no number", kedaFile, `accepted-seconds: "60"`, `accepted-seconds: "a minute"`, "got a minute"},
		{"no time", kedaFile, `accepted-seconds: "60"`, `accepted-seconds: "0"`, "got 0, want a number"},
		{"another deployment", kedaFile, "scaleTargetRef: {name: orders-worker}", "scaleTargetRef: {name: worker}", "scaleTargetRef"},
		{"another authentication", kedaFile, "authenticationRef: {name: orders-worker}", "authenticationRef: {name: other}", "authenticationRef"},
		{"handlers longer than the stop", kedaFile, `longest-handler-seconds: "100"`, `longest-handler-seconds: "600"`, "longest handler"},
		{"too many in flight", kedaFile, "maxReplicaCount: 20", "maxReplicaCount: 4001", "more than SQS allows"},

		{"root", imageFile, "USER 65532:65532", "USER 0:0", "root"},
		{"another user", imageFile, "USER 65532:65532", "USER 1000:1000", "runAsUser"},
		{"an older Go", imageFile, "golang:1.26", "golang:1.25", "Go version"},
		{"SIGKILL before the stop has ended", deployDoc, "TimeoutStopSec=120s", "TimeoutStopSec=90s", "TimeoutStopSec of 90"},
		{"a stop shorter than a poll", deployDoc, "STOP_TIMEOUT=110s", "STOP_TIMEOUT=10s", "TimeoutStopSec of 120"},
		{"a variable that the worker no longer has", workerDoc, "STOP_TIMEOUT  how", "STOPPING      how", "no environment variable STOP_TIMEOUT"},
	} {
		t.Run(tt.file+": "+tt.name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(good)
			if files[tt.file] = strings.Replace(good[tt.file], tt.old, tt.broken, 1); files[tt.file] == good[tt.file] {
				t.Fatalf("the file does not hold %q", tt.old)
			}
			if problems := strings.Join(checkDeploy(files, dynamostore.TTLAttribute), "\n"); !strings.Contains(problems, tt.want) {
				t.Errorf("got problems %q, want one about %q", problems, tt.want)
			}
		})
	}
}

func readDeploy(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, file := range []string{resourcesFile, ecsFile, workerFile, kedaFile, imageFile, deployDoc, workerDoc, "go.mod"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		files[file] = string(text)
	}
	return files
}
