import { PublishCommand, SNSClient } from "@aws-sdk/client-sns";

const [topic, id, body] = process.argv.slice(2);
const text = (value: string) => ({ DataType: "String", StringValue: value });
await new SNSClient().send(new PublishCommand({
  TopicArn: topic,
  Message: body,
  MessageAttributes: { "event-id": text(id), "event-source": text("orders"), "event-type": text("order.placed") },
}));
