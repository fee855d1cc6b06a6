import { asNumber, asObjects, asRecord, OctavoError } from "@octavo/protocol";
import { OpenAiServer, type ServerSettings } from "../http/openai-server.js";
import type { CountTokens } from "./ruler/fit-length.js";

/**
 * Counts tokens with the server under test: `POST /tokenize` beside its `/v1`, which Octavo and vLLM have.
 * Special tokens and the chat template are not counted.
 * @throws OctavoError `model_not_found` while counting, when the server does not serve the model; `target_unreachable` when it has
 * no such path or does not answer
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
    if (!reply.ok && reply.failure.httpStatus === 404) await requireModel(server, settings.model, signal);
    const why = reply.ok ? "its answer has no count" : reply.failure.message;
    throw new OctavoError(
      "target_unreachable",
      `${server.baseUrl} does not count tokens (POST /tokenize: ${why}); ask Octavo or vLLM`,
    );
  };
}

/** Servers answer 404 for a path that they do not have and for a model that they do not serve. */
async function requireModel(server: OpenAiServer, model: string, signal: AbortSignal): Promise<void> {
  const reply = await server.json({ path: "/models", signal });
  const served = reply.ok
    ? asObjects(asRecord(reply.value)["data"]).flatMap(({ id }) => (typeof id === "string" ? [id] : []))
    : [];
  if (served.length === 0 || served.includes(model)) return;
  throw new OctavoError(
    "model_not_found",
    `${server.baseUrl} does not serve ${JSON.stringify(model)}; it serves ${served.slice(0, 10).join(", ")}`,
    { param: "model" },
  );
}
