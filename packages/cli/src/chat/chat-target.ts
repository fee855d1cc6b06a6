import { randomUUID } from "node:crypto";
import { OctavoError } from "@octavo/protocol/errors";
import { embeddedModelName, isEmbeddedModel } from "@octavo/artifacts/hub/local-model";
import { createLoadingLine } from "../output/loading-line.js";

/** A server to chat with: another's by its URL, or one of a model loaded here. */
export interface ChatTarget extends AsyncDisposable {
  /** With `/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  readonly apiKey: string | undefined;
  /** Whether it can say why tokens were slow. */
  readonly isOctavo: boolean;
}

export interface ChatTargetOptions {
  /** URL of a server, or a model as `octavo serve` takes it; default the embedded one. */
  readonly target: string | undefined;
  /** Which model to ask on a server with several. */
  readonly model: string | undefined;
  readonly apiKey: string | undefined;
  readonly maxModelLen: number | undefined;
  readonly signal: AbortSignal;
}

export async function openChatTarget(options: ChatTargetOptions): Promise<ChatTarget> {
  return /^https?:\/\//.test(options.target ?? "") ? remoteTarget(options) : localTarget(options);
}

async function remoteTarget({ target = "", model, apiKey, signal }: ChatTargetOptions): Promise<ChatTarget> {
  const baseUrl = target.replace(/\/+$/, "").replace(/(\/v1)?$/, "/v1");
  const cards = await modelCards(baseUrl, apiKey, signal);
  const card = model === undefined ? cards[0] : cards.find(({ id }) => id === model);
  if (card === undefined)
    throw new OctavoError(
      "model_not_found",
      `${baseUrl} serves no model ${model ?? "at all"}${cards.length > 0 ? `; it serves ${cards.map(({ id }) => id).join(", ")}` : ""}`,
      { param: "model" },
    );
  return {
    baseUrl,
    model: card.id,
    apiKey,
    isOctavo: card.owned_by === "octavo",
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function modelCards(
  baseUrl: string,
  apiKey: string | undefined,
  signal: AbortSignal,
): Promise<readonly { readonly id: string; readonly owned_by?: string }[]> {
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${baseUrl}/models`, { headers, signal }).catch((cause: unknown) => {
    throw new OctavoError("target_unreachable", `no server answers at ${baseUrl}`, { cause });
  });
  const body: unknown = await response.json().catch(() => undefined);
  const data = typeof body === "object" && body !== null && "data" in body ? body.data : undefined;
  if (!response.ok || !Array.isArray(data))
    throw new OctavoError(
      "target_unreachable",
      `${baseUrl}/models answers ${response.status}${[401, 403].includes(response.status) ? ": give the server's key with --api-key" : ""}`,
    );
  return data.filter(
    (card): card is { id: string; owned_by?: string } =>
      typeof (card as { id?: unknown } | null)?.id === "string",
  );
}

/** A server of its own for one user: a free port of the loopback interface, a key that nobody knows, no log. */
async function localTarget({ model, maxModelLen, signal, ...given }: ChatTargetOptions): Promise<ChatTarget> {
  if (model !== undefined)
    throw new OctavoError(
      "invalid_option",
      "--model names a model of a server, which is given by its URL; a model that is loaded here is the first argument",
      { param: "model" },
    );
  const target = given.target ?? embeddedModelName;
  const [{ LLM }, loading] = [await import("@octavo/engine"), createLoadingLine(process.stderr)];
  const serverModules = import("@octavo/server");
  const name = isEmbeddedModel(target) ? target : undefined;
  const llm = await LLM.load(target, {
    onProgress: loading.update,
    onWarning: loading.warn,
    signal,
    ...(maxModelLen !== undefined && { maxModelLen }),
  }).finally(() => loading.end());
  const apiKey = randomUUID();
  const { createServer } = await serverModules;
  const server = createServer({
    model: llm,
    config: {
      host: "127.0.0.1",
      port: 0,
      apiKeys: [apiKey],
      logLevel: "silent",
      ...(name !== undefined && { servedModelNames: [name] }),
    },
  });
  const { url } = await server.listen();
  return {
    baseUrl: `${url}/v1`,
    model: name ?? llm.name,
    apiKey,
    isOctavo: true,
    async [Symbol.asyncDispose]() {
      await server.close();
      await llm[Symbol.asyncDispose]();
    },
  };
}
