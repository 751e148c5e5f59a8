// How the SDK's clients reach the endpoint.
import { Agent } from "node:http";
import { job } from "./session.mjs";

export const options = {
  region: "us-east-1",
  endpoint: job.endpoint,
  credentials: { accessKeyId: "bench", secretAccessKey: "bench" },
};
// The SDK's default of 50 sockets would be the limit, not the consumer; its documentation has this for such cases.
export const sockets = () => ({ httpAgent: new Agent({ keepAlive: true, maxSockets: 1024 }) });
