// bbc/sqs-consumer, with and without the idempotency utility of Powertools for AWS Lambda.
//
// A Consumer receives ten messages, and the next ten when all of these are handled: there is a Consumer for every ten
// slots. handleMessageBatch deletes in batches, as its documentation recommends for throughput; the messages of a batch run
// in parallel. A failed message is not returned, and so not deleted. The heartbeat runs at half the visibility timeout.
import { SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";
import { options, sockets } from "./clients.mjs";
import { handle, job, serve } from "./session.mjs";

let handleMessage = (message) => handle(message.Body);
if (job.contestant === "sqs-consumer+powertools") {
  const { idempotent } = await import("./idempotent.mjs");
  handleMessage = idempotent();
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
      const results = await Promise.allSettled(messages.map(handleMessage));
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
