import { asNumber, asRecord, OctavoError } from "@octavo/protocol";
import { OpenAiServer, type ServerSettings } from "../http/openai-server.js";
import type { CountTokens } from "./ruler/fit-length.js";

/**
 * Counts tokens with the server under test: `POST /tokenize` beside its `/v1`, which Octavo and vLLM have.
 * Special tokens and the chat template are not counted.
 * @throws OctavoError `target_unreachable` while counting, when the server has no such path or does not answer
 */
export function serverTokens(
  settings: ServerSettings & { readonly model: string },
  signal: AbortSignal,
): CountTokens {
  const server = new OpenAiServer(settings);
  return async (prompt) => {
    const reply = await server.json({
      path: "/tokenize",
      atRoot: true,
      body: { model: settings.model, prompt, add_special_tokens: false },
      signal,
    });
    const count = reply.ok ? asNumber(asRecord(reply.value)["count"]) : undefined;
    if (count !== undefined) return count;
    const why = reply.ok ? "its answer has no count" : reply.failure.message;
    throw new OctavoError(
      "target_unreachable",
      `${server.baseUrl} does not count tokens (POST /tokenize: ${why}); ask Octavo or vLLM`,
    );
  };
}
