import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** How a collector answers: with a status, a body, after a while, or by cutting the connection. */
export interface CollectorAnswer {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly waitFor?: Promise<void>;
  readonly hangUp?: boolean;
}

export interface OtlpSpanJson {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

export interface OtlpMetricJson {
  readonly name: string;
  readonly description: string;
  readonly unit: string;
  readonly histogram: {
    readonly aggregationTemporality: number;
    readonly dataPoints: readonly OtlpHistogramPointJson[];
  };
}

export interface OtlpHistogramPointJson {
  readonly attributes: OtlpSpanJson["attributes"];
  readonly startTimeUnixNano: string;
  readonly timeUnixNano: string;
  readonly count: string;
  readonly sum: number;
  readonly bucketCounts: readonly string[];
  readonly explicitBounds: readonly number[];
}

export interface OtlpLogJson {
  readonly timeUnixNano: string;
  readonly eventName?: string;
  readonly severityNumber: number;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly attributes: OtlpSpanJson["attributes"];
}

interface OtlpBody {
  readonly resourceSpans?: readonly {
    readonly resource: unknown;
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpanJson[] }[];
  }[];
  readonly resourceMetrics?: readonly {
    readonly resource: unknown;
    readonly scopeMetrics: readonly { readonly metrics: readonly OtlpMetricJson[] }[];
  }[];
  readonly resourceLogs?: readonly {
    readonly resource: unknown;
    readonly scopeLogs: readonly { readonly logRecords: readonly OtlpLogJson[] }[];
  }[];
}

export interface MockCollector extends AsyncDisposable {
  readonly url: string;
  readonly spans: OtlpSpanJson[];
  /** Metrics of each accepted body. */
  readonly metrics: (readonly OtlpMetricJson[])[];
  readonly logs: OtlpLogJson[];
  readonly resources: unknown[];
  readonly headers: Readonly<Record<string, unknown>>[];
  readonly paths: string[];
  answer: (request: number) => CollectorAnswer;
}

/** Takes OTLP over HTTP as JSON on a free port. */
export async function startCollector(): Promise<MockCollector> {
  let requests = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      void (async () => {
        const {
          status = 200,
          body: answer = {},
          headers = {},
          waitFor,
          hangUp,
        } = collector.answer(requests++);
        collector.headers.push(request.headers);
        collector.paths.push(request.url ?? "");
        await waitFor;
        if (hangUp === true) {
          request.socket.destroy();
          return;
        }
        if (status < 300) {
          const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as OtlpBody;
          for (const { resource, scopeSpans } of body.resourceSpans ?? []) {
            collector.resources.push(resource);
            for (const { spans } of scopeSpans) collector.spans.push(...spans);
          }
          for (const { resource, scopeMetrics } of body.resourceMetrics ?? []) {
            collector.resources.push(resource);
            for (const { metrics } of scopeMetrics) collector.metrics.push(metrics);
          }
          for (const { resource, scopeLogs } of body.resourceLogs ?? []) {
            collector.resources.push(resource);
            for (const { logRecords } of scopeLogs) collector.logs.push(...logRecords);
          }
        }
        response.writeHead(status, { "content-type": "application/json", ...headers });
        response.end(JSON.stringify(answer));
      })();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const collector: MockCollector = {
    url: `http://127.0.0.1:${port}`,
    spans: [],
    metrics: [],
    logs: [],
    resources: [],
    headers: [],
    paths: [],
    answer: () => ({}),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return collector;
}
