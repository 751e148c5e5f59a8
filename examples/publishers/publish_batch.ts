import { SendMessageBatchCommand, SQSClient, type SendMessageBatchRequestEntry } from "@aws-sdk/client-sqs";
import { eventKey } from "./eventkey.ts";

const [queue, ...rest] = process.argv.slice(2);
const source = "orders";
const text = (value: string) => ({ DataType: "String", StringValue: value });
const entries: SendMessageBatchRequestEntry[] = [];
for (let i = 0; i + 2 < rest.length; i += 3) {
  const [id, group, body] = rest.slice(i, i + 3);
  entries.push({
    Id: String(entries.length),
    MessageBody: body,
    MessageGroupId: group,
    MessageDeduplicationId: queue.endsWith(".fifo") ? eventKey(source, id) : undefined,
    MessageAttributes: { "event-id": text(id), "event-source": text(source), "event-type": text("order.placed") },
  });
}
const answer = await new SQSClient().send(new SendMessageBatchCommand({ QueueUrl: queue, Entries: entries }));
if (answer.Failed?.length) throw new Error(`not sent, send them again: ${JSON.stringify(answer.Failed)}`); // the call succeeds
