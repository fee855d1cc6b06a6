import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { pino } from "pino";
import { createServer as createOctavoServer } from "../create-server.js";
import type { ServerConfig } from "../config.js";
import { resolveServerConfig } from "../resolve-config.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";

interface Point {
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
  readonly count: string;
  readonly sum: number;
}

interface Metric {
  readonly name: string;
  readonly histogram: { readonly dataPoints: readonly Point[] };
}

interface Body {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly Metric[] }[];
  }[];
}

type Post = (path: string, body: unknown) => Promise<Response>;

/** What a server's last export had, after `act` talked to it. */
async function metricsOf(
  act: (post: Post, url: string) => Promise<void>,
  config: Partial<ServerConfig> = {},
): Promise<ReadonlyMap<string, readonly Point[]>> {
  const bodies: { readonly path: string; readonly text: string }[] = [];
  const collector = createServer((request, response) => {
    let text = "";
    request.on("data", (piece: Buffer) => (text += piece.toString("utf8")));
    request.on("end", () => {
      bodies.push({ path: request.url ?? "", text });
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const { port } = collector.address() as AddressInfo;
  const server = createOctavoServer({
    model: new FakeLanguageModel(),
    config: {
      port: 0,
      otlpMetricsEndpoint: `http://127.0.0.1:${port}`,
      servedModelNames: ["fake"],
      ...config,
    },
    logger: pino({ level: "silent" }),
  });
  try {
    const { url } = await server.listen();
    await act(
      (path, body) =>
        fetch(url + path, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
      url,
    );
  } finally {
    await server.drain(1000);
    collector.closeAllConnections();
    await new Promise((resolve) => collector.close(resolve));
  }
  assert.ok(bodies.every(({ path }) => path === "/v1/metrics"));
  const last = bodies.at(-1);
  if (last === undefined) return new Map();
  const { resourceMetrics } = JSON.parse(last.text) as Body;
  const metrics = resourceMetrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap((scope) => scope.metrics),
  );
  return new Map(metrics.map(({ name, histogram }) => [name, histogram.dataPoints]));
}

function valueOf(point: Point | undefined, key: string): string | undefined {
  return point?.attributes.find((attribute) => attribute.key === key)?.value.stringValue;
}

const messages = [{ role: "user", content: "private words" }];

describe("the server's OpenTelemetry metrics", () => {
  it("count each request that runs the model, sampled or not, and no other", async () => {
    const metrics = await metricsOf(
      async (post, url) => {
        await (await post("/v1/chat/completions", { messages, max_tokens: 5 })).text();
        await (await post("/v1/chat/completions", { messages, max_tokens: 5, stream: true })).text();
        await (await post("/v1/completions", { prompt: ["a", "b"], max_tokens: 1 })).text();
        await (await post("/v1/embeddings", { input: "a" })).text();
        await (await post("/tokenize", { prompt: "a" })).text();
        await (await fetch(`${url}/health`)).text();
      },
      { traceSampleRatio: 0 },
    );
    const counts = (name: string) =>
      Object.fromEntries(
        (metrics.get(name) ?? []).map((point) => [valueOf(point, "gen_ai.operation.name"), point.count]),
      );
    assert.deepEqual(counts("gen_ai.server.request.duration"), {
      chat: "2",
      text_completion: "1",
      embeddings: "1",
    });
    assert.deepEqual(counts("gen_ai.server.time_to_first_token"), { chat: "2", text_completion: "2" });
    assert.deepEqual(counts("gen_ai.server.time_per_output_token"), { chat: "2" });
    const [point] = metrics.get("gen_ai.server.time_to_first_token") ?? [];
    assert.equal(valueOf(point, "gen_ai.provider.name"), "octavo");
    assert.equal(valueOf(point, "gen_ai.request.model"), "fake");
    assert.equal(valueOf(point, "gen_ai.response.model"), "fake");
    assert.ok((point?.sum ?? -1) >= 0);
    assert.doesNotMatch(JSON.stringify([...metrics]), /private/);
  });

  it("label failures by code, never by a name that the client chose", async () => {
    const metrics = await metricsOf(async (post) => {
      await (await post("/v1/chat/completions", { model: "made-up-by-a-client", messages })).text();
      await (await post("/v1/completions", { prompt: "a", n: 0 })).text();
    });
    const points = metrics.get("gen_ai.server.request.duration") ?? [];
    assert.deepEqual(
      points.map((point) => valueOf(point, "error.type")),
      ["model_not_found", "invalid_request"],
    );
    assert.ok(points.every((point) => valueOf(point, "gen_ai.request.model") === "fake"));
    assert.equal(metrics.get("gen_ai.server.time_to_first_token"), undefined);
  });

  it("go nowhere unless a collector is named, and a collector that is down changes no answer", async () => {
    const none = await metricsOf(
      async (post) => {
        assert.equal((await post("/v1/completions", { prompt: "a", max_tokens: 1 })).status, 200);
      },
      { otlpMetricsEndpoint: "" },
    );
    assert.equal(none.size, 0);
    await metricsOf(
      async (post, url) => {
        assert.equal((await post("/v1/completions", { prompt: "a", max_tokens: 1 })).status, 200);
        const page = await (await fetch(`${url}/metrics`)).text();
        assert.match(page, /octavo:otlp_metric_exports_total\{outcome="failed"\} 0/);
      },
      { otlpMetricsEndpoint: "http://127.0.0.1:9" },
    );
  });

  it("rejects invalid addresses and intervals by option name", () => {
    const isAbout = (param: string) => (error: unknown) =>
      error instanceof OctavoError && error.code === "invalid_option" && error.param === param;
    assert.throws(
      () => resolveServerConfig({ otlpMetricsEndpoint: "localhost:4317" }),
      isAbout("otlpMetricsEndpoint"),
    );
    assert.throws(() => resolveServerConfig({ otlpMetricsIntervalMs: 10 }), isAbout("otlpMetricsIntervalMs"));
  });
});
