import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it arrived; `values` are its attributes. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly status: { readonly code?: number };
  readonly values: ReadonlyMap<string, unknown>;
}

/** An OTLP receiver that keeps spans. */
interface SpanCollector extends AsyncDisposable {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  readonly server: Server;
}

export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (piece: Buffer) => (text += piece.toString("utf8")));
    request.on("end", () => {
      const body = JSON.parse(text) as {
        resourceSpans: { scopeSpans: { spans: (ReceivedSpan & { attributes: Attribute[] })[] }[] }[];
      };
      for (const { scopeSpans } of body.resourceSpans) {
        for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
          const values = new Map(span.attributes.map(({ key, value }) => [key, plain(value)]));
          spans.push({ ...span, values });
        }
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    server,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

function plain(value: Readonly<Record<string, unknown>>): unknown {
  if ("intValue" in value) return Number(value["intValue"]);
  if ("arrayValue" in value) {
    const { values } = value["arrayValue"] as {
      readonly values: readonly Readonly<Record<string, unknown>>[];
    };
    return values.map(plain);
  }
  return value["stringValue"] ?? value["doubleValue"] ?? value["boolValue"];
}
