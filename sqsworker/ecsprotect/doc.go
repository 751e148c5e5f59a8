// Package ecsprotect keeps Amazon ECS from stopping a task while a handler of its workers runs for long. On Fargate a stop
// gives a task at most 120 s, and a handler of 15 min would begin again in another task.
//
//	g, err := ecsprotect.New()
//	w, err := sqsworker.New(client, queueURL, transcode, func(o *sqsworker.Options) {
//		o.StopTimeout = 110 * time.Second // with an ECS StopTimeout of 120 s
//		o.Hooks = append(o.Hooks, g.Hooks())
//	})
//
// A [Guard] sets the task's scale-in protection
// (https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-scale-in-protection.html) through the agent of ECS, whose
// address ECS puts into ECS_AGENT_URI. The task's role needs ecs:UpdateTaskProtection on the cluster's tasks. Without
// ECS_AGENT_URI a Guard does nothing, so the same program runs elsewhere.
//
//   - Handlers that end within Options.After make no call: a stop lets them finish. When one has run for longer, the Guard
//     protects the task. It renews the protection meanwhile, and switches it off within 2 s of the end of the last long handler.
//   - ECS doesn't tell a protected task that a deployment wants to replace it. So after Options.Most the workers take no more
//     messages, and the handlers run to their end. Then the task is open to ECS for Options.Open, and the workers go on if it
//     is still there. A deployment thus ends within Most and your longest handler. CloudFormation waits for 3 h.
//   - If the agent doesn't answer or ECS refuses, the handlers go on without protection. The Guard logs a warning and asks
//     again after 5 s, doubling to 2 min. If the process hangs or dies, the protection ends after Options.Expiry.
//
// Protection holds off scale-in and deployments only. Failed health checks, StopTask and Fargate Spot's interruptions stop a
// protected task too. A handler younger than After loses its run in a stop that it outlives.
package ecsprotect
