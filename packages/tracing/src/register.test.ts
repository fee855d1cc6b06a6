import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { register, type RegisterOptions } from "./register.js";
import { bareSpan } from "./testing/example-spans.js";
import { startCollector } from "./testing/mock-collector.js";

describe("register", () => {
  it("sends where OpenTelemetry's variables say: traces' own address as it is, below the base address otherwise", async () => {
    await using collector = await startCollector();
    const own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    const base = "OTEL_EXPORTER_OTLP_ENDPOINT";
    try {
      for (const [variables, path] of [
        [{ [base]: collector.url }, "/v1/traces"],
        [{ [base]: `${collector.url}/api/public/otel/` }, "/api/public/otel/v1/traces"],
        [{ [base]: `${collector.url}/elsewhere`, [own]: `${collector.url}/ingest` }, "/ingest"],
        [{ [base]: `${collector.url}/api`, [own]: "" }, "/api/v1/traces"],
      ] as const) {
        Object.assign(process.env, variables);
        const tracing = register();
        tracing.record(bareSpan);
        await tracing.shutdown();
        assert.equal(collector.paths.at(-1), path);
      }
    } finally {
      delete process.env[own];
      delete process.env[base];
    }
    assert.deepEqual(register().counts, [], "nothing is sent where nothing says where");
  });

  it("refuses options that make no sense, by name", () => {
    const bad: readonly (readonly [string, RegisterOptions])[] = [
      ["sampleRatio", { sampleRatio: 2 }],
      ["maxContentCharacters", { maxContentCharacters: -1 }],
      ["conventions", { conventions: ["nonsense" as "opentelemetry"] }],
      ["otlpEndpoint", { endpoint: "not an address" }],
    ];
    for (const [param, options] of bad) {
      assert.throws(
        () => register(options),
        (error) => error instanceof OctavoError && error.param === param,
        param,
      );
    }
  });
});
