import { NoSuchModelError } from "@ai-sdk/provider";
import type { ChatOptions, LLM, TemplateMessage } from "@octavo/engine";
import { usageInfo } from "@octavo/protocol";
import type { ModelSource, ModelCall, WireMessage } from "./model-source.js";

/** Answers of a model in this process. A model id is its name, `default`, or that of a loaded LoRA adapter. */
export function llmSource(llm: LLM, names: readonly string[]): ModelSource {
  const adapterOf = (modelId: string): string | undefined => llm.adapters?.find(modelId)?.name;
  const check: ModelSource["check"] = (modelId, modelType) => {
    const known = [llm.name, "default", ...names];
    if (known.includes(modelId) || adapterOf(modelId) !== undefined) return;
    const message = `No such ${modelType}: ${modelId}; this one is ${known.join(" or ")}`;
    throw new NoSuchModelError({ modelId, modelType, message });
  };
  return {
    provider: "octavo.llm",
    check,
    async *answer(modelId, call) {
      check(modelId, "languageModel");
      try {
        const generation = llm.chat(call.messages.map(templateMessage), {
          ...chatOptionsOf(call),
          adapter: adapterOf(modelId),
        });
        for await (const { text, reasoning, toolCalls } of generation)
          yield {
            id: "octavo",
            model: modelId,
            delta: {
              ...(text !== "" && { content: text }),
              ...(reasoning !== undefined && { reasoning }),
              ...(toolCalls !== undefined && { tool_calls: toolCalls }),
            },
          };
        const { sequences, usage } = await generation;
        const { promptTokens, completionTokens, cachedTokens } = usage;
        yield {
          finishReason: sequences[0]?.finishReason,
          usage: usageInfo(promptTokens, completionTokens, cachedTokens),
        };
      } catch (thrown) {
        // The SDK knows an abort by the signal's own reason.
        if (call.signal?.aborted === true) throw call.signal.reason;
        throw thrown;
      }
    },
    async embed(modelId, values, { signal, more }) {
      check(modelId, "embeddingModel");
      const options = { signal, adapter: adapterOf(modelId), ...more };
      const embeddings = (await llm.embed(values, options)).map((vector) => [...vector]);
      return { embeddings, tokens: undefined };
    },
  };
}

function chatOptionsOf(call: ModelCall): ChatOptions {
  const { tools, toolChoice, json, more } = call;
  return {
    ...(tools.length > 0 && { tools, toolChoice }),
    ...(json !== undefined && {
      constraint:
        json === true
          ? { kind: "json_object" as const }
          : { kind: "json_schema" as const, schema: json.schema as Record<string, never> },
    }),
    maxTokens: call.maxTokens,
    temperature: call.temperature,
    topP: call.topP,
    topK: call.topK,
    presencePenalty: call.presencePenalty,
    frequencyPenalty: call.frequencyPenalty,
    ...(call.seed !== undefined && { seed: BigInt(call.seed) }),
    ...(call.stop !== undefined && { stop: call.stop }),
    signal: call.signal,
    ...more,
  };
}

/** Templates take arguments as an object. */
function templateMessage({ reasoning, tool_calls: calls, ...message }: WireMessage): TemplateMessage {
  return {
    ...message,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(calls !== undefined && {
      tool_calls: calls.map(({ function: { name, arguments: text }, ...call }) => ({
        ...call,
        function: { name, arguments: JSON.parse(text) as unknown },
      })),
    }),
  };
}
