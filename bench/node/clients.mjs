// The options of the SDK's clients: how they reach the endpoint.
import { Agent } from "node:http";
import { job } from "./session.mjs";

export const options = {
  region: "us-east-1",
  endpoint: job.endpoint,
  credentials: { accessKeyId: "bench", secretAccessKey: "bench" },
};
// With the SDK's default of 50 sockets they would limit the rate, not the consumer. The SDK's documentation has this setting.
export const sockets = () => ({ httpAgent: new Agent({ keepAlive: true, maxSockets: 1024 }) });
