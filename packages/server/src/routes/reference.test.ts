import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import {
  chatCompletionRequest,
  completionRequest,
  detokenizeRequest,
  embeddingRequest,
  faultInjectionRequest,
  fieldsWithEffect,
  loadLoraRequest,
  messagesRequest,
  rerankRequest,
  responsesRequest,
  scoreRequest,
  tokenizeRequest,
  unloadLoraRequest,
} from "@octavo/protocol";
import type { z } from "zod";
import { startTestServer } from "../testing/test-server.js";
import { endpointTable, fieldEffectTable } from "./endpoints.js";

const page = readFileSync(new URL("../../../../docs/reference/http.md", import.meta.url), "utf8");

/** Field names in the first column of a section's table. */
function documentedFields(section: string): readonly string[] {
  const start = page.indexOf(`\n## ${section}\n`);
  assert.ok(start >= 0, `section ${section}`);
  const end = page.indexOf("\n## ", start + 1);
  const rows = page.slice(start, end < 0 ? undefined : end).matchAll(/^\| (`.+?`) \| /gm);
  return [...rows].flatMap(([, cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
}

/** Fields that the table of fields with an effect of their own does not list. */
function honouredFields(schema: z.ZodObject): readonly string[] {
  const listed = new Set([...fieldsWithEffect(schema, "refused"), ...fieldsWithEffect(schema, "none")]);
  return Object.keys(schema.shape)
    .filter((name) => !listed.has(name))
    .toSorted();
}

describe("the reference page of HTTP", () => {
  it("has the table of endpoints", () => {
    assert.ok(page.includes(`\n${endpointTable()}\n`), "run node tools/http-reference.mjs");
  });

  it("has the table of fields that are refused or have no effect", () => {
    assert.ok(page.includes(`\n${fieldEffectTable()}\n`), "run node tools/http-reference.mjs");
  });

  it("lists every field of every request", () => {
    const chatPromptNames = ["tools", "documents", "chat_template", "chat_template_kwargs"];
    chatPromptNames.push("add_generation_prompt", "continue_final_message");
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
      [embeddingRequest, [...documentedFields("Embeddings"), ...chatPromptNames]],
      [scoreRequest, documentedFields("Score")],
      [rerankRequest, documentedFields("Rerank")],
      [detokenizeRequest, documentedFields("Detokenize")],
    ] as const;
    for (const [schema, fields] of cases) {
      const documented = new Set(fields);
      const missing = honouredFields(schema).filter((name) => !documented.has(name));
      const foreign = fields.filter((name) => !Object.hasOwn(schema.shape, name));
      assert.deepEqual([missing, foreign], [[], []]);
    }
    assert.deepEqual(
      documentedFields("Fault injection").toSorted(),
      Object.keys(faultInjectionRequest.shape).toSorted(),
    );
    const loraFields = new Set([...honouredFields(loadLoraRequest), ...honouredFields(unloadLoraRequest)]);
    assert.deepEqual(documentedFields("LoRA").toSorted(), [...loraFields].toSorted());
    const tokenizeSection = page.slice(page.indexOf("\n## Tokenize\n"), page.indexOf("\n## Detokenize\n"));
    for (const field of honouredFields(tokenizeRequest))
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
