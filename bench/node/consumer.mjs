// bbc/sqs-consumer, alone and with Powertools for AWS Lambda's idempotency utility.
//
// A Consumer takes at most ten messages at a time and the next ten when these are done: as many Consumers run as the
// limit of handlers asks for. Batches are handled and deleted as such (handleMessageBatch), messages in parallel, which
// its documentation has for throughput; failures are left out of what is returned and so not deleted. The heartbeat is
// on, at half of the visibility timeout.
import { SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";
import { options, sockets } from "./clients.mjs";
import { handle, job, serve } from "./session.mjs";

let one = (message) => handle(message.Body);
if (job.contestant === "sqs-consumer+powertools") {
  const { idempotent } = await import("./idempotent.mjs");
  one = idempotent();
}

const sqs = new SQSClient({ ...options, requestHandler: sockets() });
const consumers = Array.from({ length: Math.max(1, Math.floor(job.slots / 10)) }, () => {
  const c = Consumer.create({
    queueUrl: job.queueURL,
    sqs,
    batchSize: 10,
    waitTimeSeconds: 20,
    visibilityTimeout: job.visibility,
    heartbeatInterval: Math.max(1, Math.floor(job.visibility / 2)),
    pollingCompleteWaitTimeMs: 10_000,
    handleMessageBatch: async (messages) => {
      const results = await Promise.allSettled(messages.map(one));
      return messages.filter((_, i) => results[i].status === "fulfilled");
    },
  });
  for (const event of ["error", "processing_error", "timeout_error"]) {
    c.on(event, (err) => console.error(event, err.message));
  }
  return c;
});

serve(
  () => consumers.forEach((c) => c.start()),
  () =>
    Promise.all(
      consumers.map(
        (c) =>
          new Promise((stopped) => {
            c.once("stopped", stopped);
            c.stop();
          }),
      ),
    ).then(() => null),
);
