import { APICallError, type JSONObject } from "@ai-sdk/provider";
import type { UsageInfo, ChatDelta } from "@octavo/protocol";
import { createSseDecoder } from "@octavo/protocol/sse";
import type { WirePart, ModelSource, Embedded, ModelCall } from "./model-source.js";

/** A server, and how to ask it. */
export interface OctavoServerSettings {
  /** With `/v1`; default `$OCTAVO_BASE_URL`, else `http://127.0.0.1:8000/v1`. */
  readonly baseURL?: string | undefined;
  /** Default `$OCTAVO_API_KEY`. */
  readonly apiKey?: string | undefined;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** In place of the global one. */
  readonly fetch?: typeof fetch | undefined;
}

interface Chunk {
  readonly id?: string;
  readonly model?: string;
  readonly choices?: readonly { readonly delta?: ChatDelta; readonly finish_reason?: string | null }[];
  readonly usage?: UsageInfo | null;
  readonly octavo?: JSONObject;
  readonly error?: { readonly message?: string };
}

/** Answers of a server that speaks OpenAI's API. */
export function serverSource(settings: OctavoServerSettings): ModelSource {
  const base = settings.baseURL ?? process.env["OCTAVO_BASE_URL"] ?? "http://127.0.0.1:8000/v1";
  const baseUrl = base.replace(/\/+$/, "");
  const key = settings.apiKey ?? process.env["OCTAVO_API_KEY"];
  const post = async (
    path: string,
    body: object,
    { headers, signal }: Pick<ModelCall, "headers" | "signal">,
  ): Promise<Response> => {
    const url = `${baseUrl}${path}`;
    const given = Object.entries({ ...settings.headers, ...headers }).filter(
      ([, value]) => value !== undefined,
    );
    const send = settings.fetch ?? fetch;
    const response = await send(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(Object.fromEntries(given) as Record<string, string>),
      },
      body: JSON.stringify(body),
      ...(signal !== undefined && { signal }),
    }).catch((cause: unknown) => {
      if (signal?.aborted === true) throw cause;
      throw new APICallError({
        message: `no server answers at ${baseUrl}`,
        url,
        requestBodyValues: body,
        cause,
        isRetryable: true,
      });
    });
    if (!response.ok) throw await refusalOf(response, url, body);
    return response;
  };
  return {
    provider: "octavo.server",
    check: () => undefined,
    async *answer(modelId, call) {
      const body = bodyOf(modelId, call);
      const response = await post("/chat/completions", body, call);
      const decoder = createSseDecoder();
      let isDone = false;
      for await (const bytes of response.body ?? [])
        for (const { data } of decoder.push(bytes)) {
          isDone ||= data === "[DONE]";
          if (data !== "[DONE]") yield partOf(JSON.parse(data) as Chunk, response.url, body);
        }
      if (!isDone) throw ended("the connection was lost in the middle of the answer", response.url, body);
    },
    async embed(modelId, values, { more, ...options }) {
      const body = { model: modelId, input: values, encoding_format: "float", ...more };
      const answer = (await (await post("/embeddings", body, options)).json()) as {
        readonly data: readonly { readonly index: number; readonly embedding: readonly number[] }[];
        readonly usage?: UsageInfo;
      };
      const sorted = answer.data.toSorted((left, right) => left.index - right.index);
      return {
        embeddings: sorted.map(({ embedding }) => embedding),
        tokens: answer.usage?.prompt_tokens,
      } satisfies Embedded;
    },
  };
}

/** What is undefined is left out by JSON. */
function bodyOf(model: string, call: ModelCall): object {
  const { tools, toolChoice, json, more } = call;
  return {
    model,
    messages: call.messages,
    ...(tools.length > 0 && {
      tools,
      tool_choice:
        typeof toolChoice === "object"
          ? { type: "function", function: { name: toolChoice.name } }
          : toolChoice,
    }),
    ...(json !== undefined && {
      response_format:
        json === true
          ? { type: "json_object" }
          : { type: "json_schema", json_schema: { ...json, strict: true } },
    }),
    max_tokens: call.maxTokens,
    temperature: call.temperature,
    top_p: call.topP,
    top_k: call.topK,
    presence_penalty: call.presencePenalty,
    frequency_penalty: call.frequencyPenalty,
    seed: call.seed,
    stop: call.stop,
    ...more,
    stream: true,
    stream_options: { include_usage: true },
  };
}

function partOf(chunk: Chunk, url: string, body: object): WirePart {
  if (chunk.error !== undefined) throw ended(chunk.error.message ?? "the answer failed", url, body);
  const { delta, finish_reason: finishReason } = chunk.choices?.[0] ?? {};
  const { id, model, usage, octavo } = chunk;
  return { id, model, delta, finishReason: finishReason ?? undefined, usage: usage ?? undefined, octavo };
}

function ended(message: string, url: string, body: object): APICallError {
  return new APICallError({ message, url, requestBodyValues: body, isRetryable: false });
}

async function refusalOf(response: Response, url: string, body: object): Promise<APICallError> {
  const text = await response.text();
  let message = text.slice(0, 400);
  let data: unknown;
  try {
    data = JSON.parse(text);
    message = (data as Chunk).error?.message ?? message;
  } catch {
    // Not JSON: its text says more than nothing.
  }
  return new APICallError({
    message,
    url,
    requestBodyValues: body,
    statusCode: response.status,
    responseHeaders: Object.fromEntries(response.headers),
    responseBody: text,
    data,
  });
}
