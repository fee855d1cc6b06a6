import { fileURLToPath } from "node:url";
import { LLM, type LoadOptions } from "@octavo/engine";
import OpenAI from "openai";
import { pino } from "pino";
import type { ServerConfig } from "../config.js";
import { createServer } from "../create-server.js";

export const octavoMiniPath = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));

export interface OctavoMini extends AsyncDisposable {
  readonly llm: LLM;
  readonly url: string;
  readonly client: OpenAI;
}

/** The embedded model on the real engine, served on a free port, and a client that talks to it without retries. */
export async function startOctavoMini(
  options: LoadOptions,
  config: Partial<ServerConfig> = {},
): Promise<OctavoMini> {
  const llm = await LLM.load(octavoMiniPath, options);
  const server = createServer({
    model: llm,
    config: { port: 0, ...config },
    logger: pino({ level: "silent" }),
  });
  const { url } = await server.listen();
  return {
    llm,
    url,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 }),
    async [Symbol.asyncDispose]() {
      await server.close();
      await llm[Symbol.asyncDispose]();
    },
  };
}
