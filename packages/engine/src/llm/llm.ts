import { randomUUID } from "node:crypto";
import type { Backend } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { given } from "@octavo/protocol/options";
import type { Adapters, LoadedAdapter } from "../adapters/adapter.js";
import type { Engine, GenerationRequest } from "../api.js";
import type { ValueSchema } from "../chat/schema.js";
import type { LanguageModel } from "../language-model.js";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import type { GrammarSpec } from "@octavo/text/structured/grammar";
import type { ImageInput } from "../images/image-input.js";
import { resolveSamplingParams } from "../sampling/resolve-sampling-params.js";
import type { ChatTemplate, TemplateInput } from "@octavo/text/template/chat-template";
import { renderInWorker } from "@octavo/text/template/render-in-worker";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { GenerationDefaults } from "@octavo/artifacts/checkpoint/checkpoint";
import { Generation, type StartedGeneration } from "./generation.js";
import type { GenerationResult } from "./generation-result.js";
import type { ChatTerms } from "./library-chat.js";
import { type LoadedParts, loadParts } from "./load-parts.js";
import type {
  ChatOptions,
  Conversation,
  EmbedOptions,
  GenerateOptions,
  ObjectResult,
  Prompt,
} from "./call-options.js";
import { checkCallOptions, generateOptionsOf } from "./option-names.js";
import type { LoadOptions } from "./load-options.js";
import { promptOf } from "./embedding-prompt.js";
import type { ModelSleep } from "./model-sleep.js";

/**
 * A model in memory with the engine that runs it. Concurrent requests are batched.
 *
 * ```ts
 * await using llm = await LLM.load("Qwen/Qwen3-0.6B");
 * for await (const { text } of llm.chat([{ role: "user", content: "Hello" }])) process.stdout.write(text);
 * ```
 */
export class LLM implements LanguageModel {
  readonly name: string;
  readonly config: ModelConfig;
  readonly numerics: string;
  readonly generation: GenerationDefaults;
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate | undefined;
  readonly namedChatTemplates: ReadonlyMap<string, ChatTemplate>;
  readonly backend: Backend;
  readonly engine: Engine;
  readonly adapters: Adapters | undefined;
  readonly images: ImageInput | undefined;
  readonly imageRefusal: string;
  /** Frees its memory for a while and takes it back; absent unless loaded with `enableSleepMode`. */
  readonly sleepMode: ModelSleep | undefined;
  readonly #parts: LoadedParts;
  #digest: Promise<string> | undefined;
  #disposal: Promise<void> | undefined;

  private constructor(parts: LoadedParts) {
    this.name = parts.name;
    this.config = parts.config;
    this.numerics = parts.numerics;
    this.generation = parts.generation;
    this.tokenizer = parts.tokenizer;
    this.chatTemplate = parts.templates.chatTemplate;
    this.namedChatTemplates = parts.templates.namedChatTemplates;
    this.backend = parts.backend;
    this.engine = parts.engine;
    this.adapters = parts.adapters;
    this.images = parts.images;
    this.imageRefusal = parts.imageRefusal;
    this.sleepMode = parts.sleepMode;
    this.#parts = parts;
  }

  /**
   * Loads a folder in Hugging Face's layout, a `.gguf` file, or a model of the hub: `org/name`, `org/name@revision`,
   * `org/name:Q4_K_M`, `org/name/file.gguf`.
   * @throws OctavoError `artifact_not_found`, `artifact_invalid`, `artifact_unsupported`, `invalid_option`, `out_of_memory`,
   *   `native_unavailable`, `request_cancelled`, or one of the hub's codes
   */
  static async load(model: string, options: LoadOptions = {}): Promise<LLM> {
    return new LLM(await loadParts(model, options));
  }

  /** The artifact by its content, see `artifactDigest`; computed once. */
  artifactDigest(): Promise<string> {
    // At level 2, files may change.
    if (this.sleepMode !== undefined) return this.#parts.artifactDigest();
    this.#digest ??= this.#parts.artifactDigest();
    return this.#digest;
  }

  /** Bytes of the packed weights. */
  get weightBytes(): number {
    return this.#parts.weightBytes;
  }

  /** Resolves once all weights are packed. Large models pack the last of them in the first seconds after loading; until then steps take longer. */
  get packed(): Promise<void> {
    return this.#parts.packed;
  }

  /** Continues a prompt. Several prompts run together and give their results in order; one failure ends the others. */
  generate(prompt: Prompt, options?: GenerateOptions): Generation;
  generate(prompts: readonly Prompt[], options?: GenerateOptions): Promise<GenerationResult[]>;
  generate(
    prompts: Prompt | readonly Prompt[],
    options: GenerateOptions = {},
  ): Generation | Promise<GenerationResult[]> {
    checkCallOptions("generate", options);
    const { addSpecialTokens = true, ...rest } = options;
    if (isPrompt(prompts))
      return this.#generation((signal) => this.#tokens(prompts, addSpecialTokens, signal), rest);
    return this.#inParallel(prompts, options, (prompt, each) => this.generate(prompt, each).result());
  }

  /**
   * Answers a conversation laid out by the model's chat template, its `tool_use` template where there are tools. Several
   * conversations run together, as several prompts do.
   */
  chat(messages: Conversation, options?: ChatOptions): Generation;
  chat(conversations: readonly Conversation[], options?: ChatOptions): Promise<GenerationResult[]>;
  chat(
    messages: Conversation | readonly Conversation[],
    options: ChatOptions = {},
  ): Generation | Promise<GenerationResult[]> {
    checkCallOptions("chat", options);
    if (isConversation(messages)) return this.#chat(messages, options);
    return this.#inParallel(messages, options, (conversation, each) =>
      this.#chat(conversation, each).result(),
    );
  }

  /**
   * Answers with a value that the schema accepts: generated under it, then checked by it. The value's type is the schema's.
   * @throws OctavoError `invalid_option` for a schema that is none, `output_invalid` where the answer was cut off, or breaks a rule
   *   that JSON Schema cannot say
   */
  async object<T>(
    schema: ValueSchema<T>,
    messages: string | Conversation,
    options: Omit<ChatOptions, "constraint" | "n"> = {},
  ): Promise<ObjectResult<T>> {
    const { checkedObject, jsonSchemaOf } = await import("../chat/checked-object.js");
    const constraint: GrammarSpec = { kind: "json_schema", schema: await jsonSchemaOf(schema, "schema") };
    const conversation = typeof messages === "string" ? [{ role: "user", content: messages }] : messages;
    const result = await this.chat(conversation, { ...options, constraint });
    return { ...result, object: await checkedObject(schema, result) };
  }

  /** The text that `chat` hands to the model. Throws `template_error` when there is no template or it fails. */
  renderChat(input: TemplateInput): string {
    const hasTools = input.tools !== undefined && input.tools.length > 0;
    const template = (hasTools ? this.namedChatTemplates.get("tool_use") : undefined) ?? this.chatTemplate;
    if (template === undefined) {
      throw new OctavoError(
        "template_error",
        `${this.name} has no chat template; load it with the option chatTemplate.`,
      );
    }
    return template.render(input);
  }

  /** Hidden states as vectors, one per text. */
  embed(text: Prompt, options?: EmbedOptions): Promise<Float32Array>;
  embed(texts: readonly Prompt[], options?: EmbedOptions): Promise<Float32Array[]>;
  embed(
    texts: Prompt | readonly Prompt[],
    options: EmbedOptions = {},
  ): Promise<Float32Array | Float32Array[]> {
    checkCallOptions("embed", options);
    if (isPrompt(texts)) return this.#embedOne(texts, options);
    return this.#inParallel(texts, options, (text, each) => this.#embedOne(text, each));
  }

  renderRequestTemplate(
    source: string,
    input: TemplateInput,
    signal?: AbortSignal,
    tenant?: string,
  ): Promise<string> {
    const { tokens } = this.#parts.templates;
    return renderInWorker(source, input, { tokens, signal, tenant });
  }

  /** Ends running requests with the finish reason `abort` and frees the memory. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#disposal ??= this.#dispose();
    return this.#disposal;
  }

  #chat(messages: Conversation, options: ChatOptions): Generation {
    // What reads answers is needed once one is there to be read.
    const chat = import("./library-chat.js").then(
      ({ LibraryChat }) => new LibraryChat(this, messages, options),
    );
    chat.catch(() => undefined);
    const start = async (): Promise<StartedGeneration> => {
      const { text, images, terms } = await (await chat).prepare((input) => this.renderChat(input));
      // The template writes the special tokens itself.
      const encode = (signal: AbortSignal | undefined): Promise<Int32Array> =>
        this.#tokens(text, false, signal);
      return this.#start(encode, generateOptionsOf(options), { ...terms, images });
    };
    return new Generation(start, async (result) => (await chat).next(start)(result));
  }

  #generation(
    encode: (signal: AbortSignal | undefined) => Promise<Int32Array>,
    options: GenerateOptions,
  ): Generation {
    return new Generation(() => this.#start(encode, options));
  }

  async #start(
    encode: (signal: AbortSignal | undefined) => Promise<Int32Array>,
    options: GenerateOptions,
    chat?: ChatTerms & { readonly images: readonly Uint8Array[] },
  ): Promise<StartedGeneration> {
    const {
      signal,
      cacheSalt,
      promptLogprobsFrom,
      adapter: adapterName,
      priority,
      account,
      deadlines,
      constraint,
      requestId = randomUUID(),
      ...sampling
    } = options;
    const arrivalMs = performance.now();
    const adapter = this.#adapter(adapterName);
    const promptTokens = await encode(signal);
    const params = resolveSamplingParams(sampling, {
      defaults: this.generation,
      vocabSize: this.config.vocabSize,
      maxModelLen: this.engine.maxModelLen,
      numPromptTokens: promptTokens.length,
      maxLogprobs: -1,
    });
    const spec = chat === undefined ? constraint : chat.constraint;
    const grammar = spec && (await this.engine.compileGrammar(spec, signal));
    const { keptSpecialTokens, thinking, images: files = [] } = chat ?? {};
    const images =
      files.length === 0 ? undefined : await this.images?.place(promptTokens, files, { ...account, signal });
    const request: GenerationRequest = {
      kind: "generate",
      requestId,
      promptTokens,
      params: keptSpecialTokens === undefined ? params : { ...params, keptSpecialTokens },
      arrivalMs,
      ...given({
        images,
        thinking,
        grammar,
        adapter,
        cacheSalt,
        promptLogprobsFrom,
        priority,
        account,
        deadlines,
      }),
    };
    const createReader = chat?.createReader(promptTokens);
    return { requestId, promptTokens, signal, createReader, events: this.engine.generate(request, signal) };
  }

  #adapter(name: string | undefined): LoadedAdapter | undefined {
    if (name === undefined) return undefined;
    const adapter = this.adapters?.find(name);
    if (adapter !== undefined) return adapter;
    const hint =
      this.adapters === undefined
        ? "; load the model with enableLora"
        : `; loaded are: ${
            this.adapters
              .list()
              .map((known) => known.name)
              .join(", ") || "none"
          }`;
    throw new OctavoError(
      "model_not_found",
      `There is no adapter ${JSON.stringify(name.slice(0, 200))}${hint}.`,
      {
        param: "adapter",
      },
    );
  }

  async #embedOne(text: Prompt, options: EmbedOptions): Promise<Float32Array> {
    const { encoder, embedding, classifier } = this.config;
    if (classifier !== undefined) throw noEmbeddings(this.name);
    const declared = embedding?.pooling ?? (encoder === undefined ? "last" : "mean");
    const { pooling = declared, normalize = embedding?.normalize ?? true, signal } = options;
    const adapter = this.#adapter(options.adapter);
    const prompted = typeof text === "string" ? promptOf(embedding, options.promptName) + text : text;
    const promptTokens = await this.#tokens(prompted, true, signal);
    const { embedding: vector } = await this.engine.embed(
      {
        kind: "embed",
        requestId: randomUUID(),
        promptTokens,
        pooling,
        normalize,
        adapter,
        arrivalMs: performance.now(),
      },
      signal,
    );
    return vector;
  }

  async #tokens(
    prompt: Prompt,
    addSpecialTokens: boolean,
    signal: AbortSignal | undefined,
  ): Promise<Int32Array> {
    if (typeof prompt !== "string") return prompt;
    return this.tokenizer.encodeAsync(prompt, {
      addSpecialTokens,
      signal,
      maxTokens: this.engine.maxModelLen,
    });
  }

  /** Runs as many at once as the engine does, so that a long list does not overflow the queue. One failure ends the others. */
  async #inParallel<
    T,
    R,
    O extends { readonly signal?: AbortSignal | undefined; readonly requestId?: string | undefined },
  >(items: readonly T[], options: O, work: (item: T, options: O) => Promise<R>): Promise<R[]> {
    if (!Array.isArray(items)) {
      throw new OctavoError(
        "invalid_request",
        "Give text, an Int32Array of token ids, messages, or a list of them.",
      );
    }
    const { signal, requestId } = options;
    const failure = new AbortController();
    const either = signal === undefined ? failure.signal : AbortSignal.any([signal, failure.signal]);
    const results: R[] = [];
    const queue = items.entries();
    const worker = async (): Promise<void> => {
      for (const [index, item] of queue) {
        const id = requestId === undefined ? undefined : `${requestId}-${index}`;
        results[index] = await work(item, { ...options, signal: either, requestId: id });
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(items.length, this.#parts.maxNumSeqs) }, worker));
    } catch (error) {
      failure.abort();
      throw error;
    }
    return results;
  }

  async #dispose(): Promise<void> {
    await this.engine[Symbol.asyncDispose]();
    this.tokenizer[Symbol.dispose]?.();
    // The weight cache still uses the backend for checksums.
    await this.#parts.saved;
    for (const part of this.#parts.owned) part[Symbol.dispose]();
  }
}

function noEmbeddings(name: string): OctavoError {
  return new OctavoError(
    "invalid_request",
    `${name} scores texts: it has a head that classifies, and gives no embeddings.`,
    {
      param: "model",
    },
  );
}

function isPrompt(prompts: Prompt | readonly Prompt[]): prompts is Prompt {
  return typeof prompts === "string" || prompts instanceof Int32Array;
}

/** An empty list counts as a conversation; the template decides what to do with it. */
function isConversation(messages: Conversation | readonly Conversation[]): messages is Conversation {
  return Array.isArray(messages) && !Array.isArray(messages[0]);
}
