// A process that is started as `octavo serve` is and answers what the cluster asks, without a model. Faults by name in its flags.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";

const names = ["replica-id", "served-model-name", "fault", "fault-numbers", "delay-ms", "host", "port"];
const { values } = parseArgs({
  strict: false,
  options: Object.fromEntries(names.map((name) => [name, { type: "string" } as const])),
});
const id = String(values["replica-id"]);
const model = String(values["served-model-name"]);
const fault = String(values["fault"] ?? "");
/** Replicas whose number is in the list have the fault. */
const numbers = String(values["fault-numbers"] ?? "").split(",");
const hasFault = (name: string): boolean =>
  fault === name && (numbers[0] === "" || numbers.includes(id.slice(id.lastIndexOf("-") + 1)));
const key = process.env["OCTAVO_REPLICA_KEY"];
const delayMs = Number(values["delay-ms"] ?? 0);

if (hasFault("exit")) {
  process.stderr.write("there is no such model\n");
  process.exit(3);
}
let isDraining = false;
const server = createServer((request, response) => {
  const send = (status: number, value: object): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
  request.resume();
  if (request.url === "/health") send(hasFault("never-healthy") || isDraining ? 503 : 200, {});
  else if (request.url === "/metrics")
    response.end('vllm:num_requests_running{model="m"} 3\nvllm:kv_cache_usage_perc 0.25\n');
  else if (request.url === "/server_info")
    send(200, {
      version: "fake",
      replica_id: id,
      artifact_digest: hasFault("other-artifact") ? "sha256:other" : "sha256:same",
      kernel_path: "fake",
      settings: {},
      clock: { unix_ms: Date.now(), cpu_mhz: 1000 },
    });
  else if (request.url?.startsWith("/prefix_cache/")) {
    if (key === undefined || request.headers["x-octavo-replica-key"] !== key) send(404, {});
    else if (request.method === "POST") send(200, { prefixes: 1, tokens: 3 });
    else send(200, { prefixes: [{ tokens: [1, 2, 3], cache_scope: null, cache_salt: null, heat: 5 }] });
  } else if (request.url === "/v1/completions")
    setTimeout(
      () =>
        send(200, {
          object: "text_completion",
          model,
          choices: [{ index: 0, text: id, finish_reason: "stop" }],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          octavo: { logits_digests: [[hasFault("other-logits") ? id : "same"]] },
        }),
      delayMs,
    );
  else send(404, {});
});
const host = String(values["host"] ?? "127.0.0.1");
server.listen(Number(values["port"] ?? 0), host, () => {
  process.stdout.write(`fake replica at http://${host}:${(server.address() as AddressInfo).port}/v1\n`);
});
process.on("SIGTERM", () => {
  isDraining = true;
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
