// The calls of the bench to a contestant: a line of JSON for each request and response, as in internal/pipe.
import { createInterface } from "node:readline";

export const job = JSON.parse(process.env.SQSONCE_BENCH_JOB);

const starts = new Uint32Array(job.events);
const done = new Uint8Array(Math.ceil(job.events / 8));
let cpuAtStart = 0;

const cpu = () => {
  const u = process.cpuUsage();
  return u.user + u.system;
};

// The handler: it records its start and its end, and waits.
export async function handle(body) {
  const n = Number(body.slice(7, 14)); // {"id":"0000042"
  if (!(n < job.events)) return;
  starts[n]++;
  if (job.handler > 0) await new Promise((wake) => setTimeout(wake, job.handler));
  done[n >> 3] |= 1 << (n & 7);
}

// The start signal: what was used before it is not counted.
export const begin = () => {
  cpuAtStart = cpu();
};

export function usage() {
  const used = cpu() - cpuAtStart;
  let doubled = 0;
  for (const n of starts) if (n > 1) doubled++;
  return { cpu: used, mallocs: -1, doubled, done: Buffer.from(done).toString("base64") };
}

// Serves calls until standard input ends.
export function serve(start, stop) {
  const calls = {
    go: () => {
      begin();
      start();
    },
    usage,
    stop,
  };
  const lines = createInterface({ input: process.stdin });
  lines.on("close", () => process.exit(0));
  lines.on("line", async (line) => {
    let response;
    try {
      const { call } = JSON.parse(line);
      response = { reply: (await calls[call]()) ?? null };
    } catch (err) {
      response = { error: String(err) };
    }
    process.stdout.write(JSON.stringify(response) + "\n");
  });
}
