import { LLM, type LoadOptions } from "@octavo/engine";
import { pino } from "pino";
import type { ServerConfig } from "../config.js";
import { createServer } from "../create-server.js";

export interface EncoderServer extends AsyncDisposable {
  readonly llm: LLM;
  post(path: string, body: object): Promise<Response>;
  get(path: string): Promise<Response>;
}

/** A tiny encoder or reranker on the real engine, served on a free port. */
export async function startEncoder(
  path: string,
  options: LoadOptions = {},
  config: Partial<ServerConfig> = {},
): Promise<EncoderServer> {
  const llm = await LLM.load(path, { numThreads: 2, kvCacheDtype: "f32", ...options });
  const server = createServer({
    model: llm,
    config: { port: 0, ...config },
    logger: pino({ level: "silent" }),
  });
  const { url } = await server.listen();
  return {
    llm,
    get: (place) => fetch(url + place),
    post: (place, body) =>
      fetch(url + place, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    async [Symbol.asyncDispose]() {
      await server.close();
      await llm[Symbol.asyncDispose]();
    },
  };
}
