import type {
  ChatTemplate,
  LanguageModel,
  ModelConfig,
  TemplateInput,
  TemplateMessage,
} from "@octavo/engine";
import { detectContentFormat } from "@octavo/engine/parts";
import { TemplateWorkError } from "@octavo/text/template/template-work";
import { OctavoError } from "@octavo/protocol";
import { FakeEngine, type FakeBehaviour } from "./fake-engine.js";
import { FakeFaults } from "./fake-faults.js";
import { ByteTokenizer } from "@octavo/text/testing/byte-tokenizer";

export interface FakeModelOptions extends Partial<FakeBehaviour> {
  readonly name?: string;
  readonly maxModelLen?: number;
  readonly chatTemplate?: boolean;
  readonly templateSource?: string;
  readonly toolTemplate?: boolean;
  /** Steps that the template takes; default 0. */
  readonly templateWork?: number;
  /** As an engine made with `enableFaultInjection`. */
  readonly takesFaults?: boolean;
}

/** A language model without weights, for tests of everything around one. What it was given is kept in its fields. */
export class FakeLanguageModel implements LanguageModel {
  readonly name: string;
  readonly tokenizer = new ByteTokenizer();
  readonly engine: FakeEngine;
  readonly config: ModelConfig = fakeConfig;
  readonly numerics = "fake";
  readonly generation: LanguageModel["generation"] = {};
  readonly chatTemplate: ChatTemplate | undefined;
  readonly namedChatTemplates = new Map<string, ChatTemplate>();
  readonly rendered: TemplateInput[] = [];

  constructor(options: FakeModelOptions = {}) {
    const {
      name = "fake/model",
      maxModelLen = 4096,
      chatTemplate = true,
      templateSource = "",
      toolTemplate = false,
      templateWork = 0,
      takesFaults = false,
      ...behaviour
    } = options;
    this.name = name;
    this.engine = new FakeEngine(this.tokenizer, maxModelLen, {
      reply: (_prompt, index) => `Hello, wörld ${index}!`,
      stepDelayMs: 0,
      tokensPerStep: 1,
      cachedTokens: 0,
      refuseWith: undefined,
      failAfterSteps: undefined,
      ...behaviour,
    });
    if (takesFaults) this.engine.faults = new FakeFaults();
    this.chatTemplate = chatTemplate ? this.#template(templateSource, "", templateWork) : undefined;
    if (toolTemplate) this.namedChatTemplates.set("tool_use", this.#template("", "tools:", templateWork));
  }

  renderRequestTemplate(source: string, input: TemplateInput): Promise<string> {
    if (source.includes("loop"))
      return Promise.reject(new OctavoError("template_error", "the template took too long"));
    return Promise.resolve(source + render(input));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine[Symbol.asyncDispose]();
  }

  #template(source: string, lead: string, work: number): ChatTemplate {
    return {
      source,
      contentFormat: detectContentFormat(source),
      render: (input, maxWork = Infinity) => {
        if (work > maxWork) throw new TemplateWorkError(maxWork);
        this.rendered.push(input);
        return lead + render(input);
      },
    };
  }
}

function render(input: TemplateInput): string {
  const turns = input.messages.map(
    (message) => `<|im_start|>${message.role}\n${textOf(message.content)}<|im_end|>\n`,
  );
  if (input.continueFinalMessage === true) return turns.join("").replace(/<\|im_end\|>\n$/, "");
  return turns.join("") + (input.addGenerationPrompt === false ? "" : "<|im_start|>assistant\n");
}

function textOf(content: TemplateMessage["content"]): string {
  return typeof content === "string"
    ? content
    : (content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("|");
}

const fakeConfig: ModelConfig = {
  architecture: "LlamaForCausalLM",
  vocabSize: 261,
  hiddenSize: 8,
  intermediateSize: 16,
  numLayers: 1,
  numHeads: 1,
  numKvHeads: 1,
  headDim: 8,
  rmsNormEps: 1e-6,
  maxPositionEmbeddings: 4096,
  tieWordEmbeddings: true,
  attentionBias: false,
  mlpBias: false,
  hiddenActivation: "silu",
  rope: { theta: 10_000, rotaryDim: 8, layout: "neox", scaling: { kind: "none" } },
  slidingWindows: [undefined],
  dtype: "f32",
  bosTokenId: 256,
  eosTokenIds: [257],
};
