import type { Adapters } from "./adapters/adapter.js";
import type { Engine } from "./api.js";
import type { ImageInput } from "./images/image-input.js";
import type { ModelSleep } from "./llm/model-sleep.js";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import type { ChatTemplate, TemplateInput } from "@octavo/text/template/chat-template";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { GenerationDefaults } from "@octavo/artifacts/checkpoint/checkpoint";

/** A loaded artifact with the engine that runs it, as the server and the library use it. */
export interface LanguageModel extends AsyncDisposable {
  /** As the user named it. */
  readonly name: string;
  readonly engine: Engine;
  /** LoRA adapters that requests may name; absent unless enabled. */
  readonly adapters?: Adapters | undefined;
  /** Frees its memory for a while and takes it back; absent unless enabled. */
  readonly sleepMode?: Pick<ModelSleep, "level" | "byteLength" | "sleep" | "wakeUp"> | undefined;
  /** Where the model takes images. */
  readonly images?: ImageInput | undefined;
  /** Why it does not, where it does not. */
  readonly imageRefusal?: string;
  readonly tokenizer: Tokenizer;
  readonly config: ModelConfig;
  /**
   * With the artifact, decides the bits of answers: the backend, its kernel path, the types of weights and of the KV cache, such as
   * `cpu avx512 avx512_bf16 weights:bf16 kv:bf16`. Bits are promised between processes that name the same.
   */
  readonly numerics: string;
  /** Names the artifact by its content; absent where there are no files. */
  artifactDigest?(): Promise<string>;
  readonly generation: GenerationDefaults;
  /** Undefined when the checkpoint has none; chat then needs `--chat-template`. */
  readonly chatTemplate: ChatTemplate | undefined;
  /** Named templates of the checkpoint, such as `tool_use`. */
  readonly namedChatTemplates: ReadonlyMap<string, ChatTemplate>;
  /** Renders a template that came with a request, or has much to do, in a worker under limits of work and memory. */
  renderRequestTemplate(
    source: string,
    input: TemplateInput,
    signal?: AbortSignal,
    tenant?: string,
  ): Promise<string>;
}
