import OpenAI from "openai";
import { pino } from "pino";
import type { ServerConfig } from "../config.js";
import { createServer, type OctavoServer } from "../create-server.js";
import { FakeLanguageModel, type FakeModelOptions } from "./fake-language-model.js";

export interface TestServer extends AsyncDisposable {
  readonly model: FakeLanguageModel;
  readonly server: OctavoServer;
  readonly url: string;
  readonly port: number;
  readonly client: OpenAI;
  /** POSTs a JSON body, or text as it is. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

/** A server on a free port over a fake model, and a client that talks to it without retries. */
export async function startTestServer(
  config: Partial<ServerConfig> = {},
  modelOptions: FakeModelOptions = {},
): Promise<TestServer> {
  const model = new FakeLanguageModel(modelOptions);
  const server = createServer({ model, config: { port: 0, ...config }, logger: pino({ level: "silent" }) });
  const { url, port } = await server.listen();
  const apiKey = config.apiKeys?.[0] ?? "unused";
  return {
    model,
    server,
    url,
    port,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 }),
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: () => server.close(),
  };
}
