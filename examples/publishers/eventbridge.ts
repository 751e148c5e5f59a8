import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";

const [bus, id, data] = process.argv.slice(2);
const event = { specversion: "1.0", id, source: "orders", type: "order.placed", data: JSON.parse(data) };
const entry = { EventBusName: bus, Source: "orders", DetailType: event.type, Detail: JSON.stringify(event) };
const answer = await new EventBridgeClient().send(new PutEventsCommand({ Entries: [entry] }));
if (answer.FailedEntryCount) throw new Error(`not published: ${JSON.stringify(answer.Entries)}`);
