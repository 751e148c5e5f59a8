#!/usr/bin/env node
// @aws-lambda-powertools/batch as a Lambda bootstrap. AWS's Node runtime is not on npm as JavaScript: the loop at the end
// takes its place.
import { Agent, request } from "node:http";
import { BatchProcessor, EventType, processPartialResponse } from "@aws-lambda-powertools/batch";
import { begin, handle, usage } from "./session.mjs";

const processor = new BatchProcessor(EventType.SQS);
const handler = (event) => processPartialResponse(event, (record) => handle(record.body), processor);

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");

function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const r = request({ agent, host, port, method, path: `/2018-06-01/runtime/invocation/${path}` }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => resolve({ id: response.headers["lambda-runtime-aws-request-id"], body: Buffer.concat(parts).toString() }));
    });
    r.on("error", reject);
    r.end(body);
  });
}

begin();
for (;;) {
  const { id, body } = await call("GET", "next");
  const event = JSON.parse(body);
  try {
    const reply = event["sqsonce-bench"] === "usage" ? usage() : await handler(event);
    await call("POST", `${id}/response`, JSON.stringify(reply));
  } catch (err) {
    await call("POST", `${id}/error`, JSON.stringify({ errorType: err.name, errorMessage: err.message }));
  }
}
