import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import {
  chatCompletionRequest,
  completionRequest,
  detokenizeRequest,
  embeddingRequest,
  faultInjectionRequest,
  loadLoraRequest,
  messagesRequest,
  rerankRequest,
  responsesRequest,
  scoreRequest,
  tokenizeRequest,
  unloadLoraRequest,
} from "@octavo/protocol";
import { startTestServer } from "../testing/test-server.js";
import { endpointTable } from "./endpoints.js";

const page = readFileSync(new URL("../../../../docs/reference/http.md", import.meta.url), "utf8");

/** Field names in the first column of a section's table. */
function documentedFields(section: string): readonly string[] {
  const start = page.indexOf(`\n## ${section}\n`);
  assert.ok(start >= 0, `section ${section}`);
  const end = page.indexOf("\n## ", start + 1);
  const rows = page.slice(start, end < 0 ? undefined : end).matchAll(/^\| (`.+?`) \| /gm);
  return [...rows].flatMap(([, cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
}

describe("the reference page of HTTP", () => {
  it("has the table of endpoints", () => {
    assert.ok(page.includes(`\n${endpointTable()}\n`), "run node tools/http-reference.mjs");
  });

  it("lists every field of every request", () => {
    const shared = [
      ...documentedFields("Sampling"),
      ...documentedFields("Delivery"),
      ...documentedFields("Constraints"),
    ];
    const cases = [
      [chatCompletionRequest, [...shared, ...documentedFields("Chat completions")]],
      [completionRequest, [...shared, ...documentedFields("Completions")]],
      [responsesRequest, documentedFields("Responses")],
      [messagesRequest, documentedFields("Messages")],
      [embeddingRequest, documentedFields("Embeddings")],
      [scoreRequest, documentedFields("Score")],
      [rerankRequest, documentedFields("Rerank")],
      [detokenizeRequest, documentedFields("Detokenize")],
    ] as const;
    for (const [schema, fields] of cases)
      assert.deepEqual(fields.toSorted(), Object.keys(schema.shape).toSorted());
    assert.deepEqual(
      documentedFields("Fault injection").toSorted(),
      Object.keys(faultInjectionRequest.shape).toSorted(),
    );
    const loraFields = new Set([
      ...Object.keys(loadLoraRequest.shape),
      ...Object.keys(unloadLoraRequest.shape),
    ]);
    assert.deepEqual(documentedFields("LoRA").toSorted(), [...loraFields].toSorted());
    const tokenizeSection = page.slice(page.indexOf("\n## Tokenize\n"), page.indexOf("\n## Detokenize\n"));
    for (const field of Object.keys(tokenizeRequest.shape))
      assert.ok(tokenizeSection.includes(`\`${field}\``), field);
  });
});

describe("the reference page of metrics", () => {
  it("lists every metric with its type, and no others", async () => {
    const metricsPage = readFileSync(
      new URL("../../../../docs/reference/metrics.md", import.meta.url),
      "utf8",
    );
    const documented = [...metricsPage.matchAll(/^\| `([\w:]+)` \| (\w+) \| /gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    await using server = await startTestServer(
      { enableLegacyMetricNames: true, enableFaultInjection: true },
      { takesFaults: true },
    );
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const actual = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    assert.deepEqual(documented.toSorted(), actual.toSorted());
    const legacySection = metricsPage.slice(
      metricsPage.indexOf("## Older names"),
      metricsPage.indexOf("## HTTP"),
    );
    const legacy = [...legacySection.matchAll(/^\| `([\w:]+)` /gm)].map(([, name = ""]) => name);
    assert.equal(legacy.length, 4);
    await using plain = await startTestServer();
    const plainText = await (await fetch(`${plain.url}/metrics`)).text();
    for (const name of [...legacy, "octavo:faults_injected_total"])
      assert.ok(!plainText.includes(`# TYPE ${name} `), name);
  });
});
