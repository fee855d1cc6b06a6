import {
  type EmbeddingModelV3,
  type LanguageModelV3,
  type LanguageModelV3StreamPart,
  NoSuchModelError,
  type ProviderV3,
} from "@ai-sdk/provider";
import type { LLM } from "@octavo/engine";
import type { ModelSource } from "./model-source.js";
import { callOf } from "./call-of-options.js";
import { llmSource } from "./llm-source.js";
import { type OctavoServerSettings, serverSource } from "./server-source.js";
import { collectParts, streamParts } from "./stream-parts.js";

export type { OctavoServerSettings } from "./server-source.js";

/** A model in this process, and other names that its calls may use. */
export interface InProcessSettings {
  /** Loaded by the caller, who disposes it. */
  readonly llm: LLM;
  readonly names?: readonly string[] | undefined;
}

/** Octavo for the Vercel AI SDK, 6 and later: `octavo("name")` is a language model. */
export interface OctavoProvider extends ProviderV3 {
  (modelId: string): LanguageModelV3;
}

/**
 * A provider over a server of Octavo (or any that speaks OpenAI's API), or over a model in this process:
 *
 * ```ts
 * const octavo = createOctavo({ baseURL: "http://127.0.0.1:8000/v1" });
 * const { text } = await generateText({ model: octavo("octavo-mini"), prompt: "Hello!" });
 * ```
 *
 * `providerOptions.octavo` of a call is handed on: to a server as fields of the request, to a model in this process as options of
 * `llm.chat` and `llm.embed`.
 */
export function createOctavo(settings: OctavoServerSettings | InProcessSettings = {}): OctavoProvider {
  const source = "llm" in settings ? llmSource(settings.llm, settings.names ?? []) : serverSource(settings);
  const languageModel = (modelId: string): LanguageModelV3 => languageModelOf(source, modelId);
  const embeddingModel = (modelId: string): EmbeddingModelV3 => embeddingModelOf(source, modelId);
  return Object.assign(languageModel, {
    specificationVersion: "v3" as const,
    languageModel,
    embeddingModel,
    imageModel(modelId: string): never {
      throw new NoSuchModelError({ modelId, modelType: "imageModel" });
    },
  });
}

function languageModelOf(source: ModelSource, modelId: string): LanguageModelV3 {
  source.check(modelId, "languageModel");
  const partsOf = (
    options: Parameters<LanguageModelV3["doStream"]>[0],
  ): AsyncGenerator<LanguageModelV3StreamPart, void, undefined> => {
    const { call, warnings } = callOf(options);
    return streamParts(source.answer(modelId, call), warnings);
  };
  return {
    specificationVersion: "v3",
    provider: source.provider,
    modelId,
    supportedUrls: {},
    async doGenerate(options) {
      return collectParts(partsOf(options));
    },
    async doStream(options) {
      const parts = partsOf(options);
      // What fails before anything was answered is thrown, so that the SDK may try again.
      const first = [await parts.next(), await parts.next()];
      for (const { value } of first) if (value?.type === "error") throw value.error;
      const stream = new ReadableStream<LanguageModelV3StreamPart>({
        async pull(controller) {
          const { done, value } = first.shift() ?? (await parts.next());
          if (done === true) controller.close();
          else controller.enqueue(value);
        },
        async cancel() {
          await parts.return();
        },
      });
      return { stream };
    },
  };
}

function embeddingModelOf(source: ModelSource, modelId: string): EmbeddingModelV3 {
  source.check(modelId, "embeddingModel");
  return {
    specificationVersion: "v3",
    provider: source.provider,
    modelId,
    maxEmbeddingsPerCall: 256,
    supportsParallelCalls: true,
    async doEmbed({ values, abortSignal: signal, headers = {}, providerOptions }) {
      const more = providerOptions?.["octavo"] ?? {};
      const { embeddings, tokens } = await source.embed(modelId, values, { more, headers, signal });
      return {
        embeddings: embeddings.map((vector) => [...vector]),
        ...(tokens !== undefined && { usage: { tokens } }),
        warnings: [],
      };
    },
  };
}
