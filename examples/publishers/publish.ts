import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { eventKey } from "./eventkey.ts";

const [queue, id, group, body] = process.argv.slice(2);
const source = "orders";
const text = (value: string) => ({ DataType: "String", StringValue: value });
await new SQSClient().send(new SendMessageCommand({
  QueueUrl: queue,
  MessageBody: body,
  MessageGroupId: group,
  MessageDeduplicationId: queue.endsWith(".fifo") ? eventKey(source, id) : undefined,
  MessageAttributes: { "event-id": text(id), "event-source": text(source), "event-type": text("order.placed") },
}));
