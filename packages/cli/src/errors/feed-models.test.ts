import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { clusterFindings, emptyFeed, updateFeed } from "@octavo/optimize";
import { embedOf, withJudgedCauses } from "./feed-models.js";

const finding = (id: string, cause: string, text: string) => ({
  id,
  kind: "answer" as const,
  cause,
  description: text,
  quotes: [{ field: "output", text }],
  traceId: id,
  epochMs: 1,
  tenant: undefined,
  replica: undefined,
  model: undefined,
  lostMs: undefined,
});

test("a judge is asked for what has no measured cause alone, and a server's embeddings make the clusters", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString("utf8")));
    request.on("end", () => {
      const { input } = JSON.parse(body) as { readonly input?: readonly string[] };
      response.setHeader("content-type", "application/json");
      if (input !== undefined) {
        // by meaning: all about money are alike, however they are worded
        const data = input.map((text, index) => ({
          index,
          embedding: /refund|money/.test(text) ? [1, 0] : [0, 1],
        }));
        response.end(JSON.stringify({ data }));
        return;
      }
      asked.push(body);
      response.end(
        JSON.stringify({
          choices: [{ message: { role: "assistant", content: "tool_parser" }, finish_reason: "stop" }],
        }),
      );
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const findings = [
      finding("a", "polite", "you get a refund"),
      finding("b", "polite", "money is on its way"),
      finding("c", "polite", "no idea at all"),
      finding("d", "queue_full", "refused"),
    ];
    const embed = embedOf({ embeddings: url, embeddingModel: "e", embeddingKeyEnv: undefined });
    const clusters = await clusterFindings(findings, { embed });
    assert.deepEqual(
      clusters.map((cluster) => cluster.findings.length).toSorted((a, b) => a - b),
      [1, 1, 2],
    );
    const flags = { judge: url, judgeModel: "j", judgeKeyEnv: undefined };
    const state = await withJudgedCauses(updateFeed(emptyFeed, clusters, 2), flags);
    const judged = state.entries.map(({ cause, judged: one }) => `${cause} ${one?.cause}`).toSorted();
    assert.deepEqual(judged, ["polite tool_parser", "polite tool_parser", "queue_full undefined"]);
    assert.equal(asked.length, 3, "one question a trace");
    await withJudgedCauses(state, flags);
    assert.equal(asked.length, 3, "nothing is asked twice");
    assert.equal(await withJudgedCauses(state, { ...flags, judge: undefined, judgeModel: undefined }), state);
    await assert.rejects(
      withJudgedCauses(state, { ...flags, judgeModel: undefined }),
      /give --judge and --judge-model/,
    );
    assert.throws(() => embedOf({ embeddings: url, embeddingModel: undefined, embeddingKeyEnv: undefined }), {
      code: "invalid_option",
    });
  } finally {
    server.close();
  }
});
