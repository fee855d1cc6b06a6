import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type {
  Backend,
  Matrix,
  MatrixOptions,
  MatrixSource,
  ProgramSpec,
  Vector,
  WeightType,
} from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { Checkpoint, TensorInfo } from "@octavo/artifacts/checkpoint/checkpoint";
import { loadModel } from "./load-model.js";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import { planModel } from "@octavo/artifacts/program/registry";
import { WeightCache } from "./weight-cache/weight-cache.js";

const config: ModelConfig = {
  architecture: "LlamaForCausalLM",
  vocabSize: 40,
  hiddenSize: 16,
  intermediateSize: 24,
  numLayers: 2,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 4,
  rmsNormEps: 1e-5,
  maxPositionEmbeddings: 64,
  tieWordEmbeddings: false,
  attentionBias: false,
  attentionOutputBias: false,
  mlpBias: false,
  hiddenActivation: "silu",
  rope: { theta: 10000, rotaryDim: 4, layout: "neox", scaling: { kind: "none" } },
  slidingWindows: [undefined, 8],
  dtype: "f32",
  bosTokenId: undefined,
  eosTokenIds: [],
};

function tensor(name: string, shape: readonly number[], type: WeightType = "f32"): TensorInfo {
  return {
    name,
    type,
    shape,
    path: "model.safetensors",
    offset: 0,
    byteLength: 4 * shape.reduce((a, b) => a * b, 1),
  };
}

function tensorsOf(
  model: ModelConfig,
  types: Readonly<Record<string, WeightType>> = {},
): Map<string, TensorInfo> {
  const { hiddenSize, intermediateSize, headDim } = model;
  const q = model.numHeads * headDim;
  const kv = model.numKvHeads * headDim;
  const shapes: Record<string, readonly number[]> = {
    "model.embed_tokens.weight": [model.vocabSize, hiddenSize],
    "model.norm.weight": [hiddenSize],
    ...(!model.tieWordEmbeddings && { "lm_head.weight": [model.vocabSize, hiddenSize] }),
  };
  for (let layer = 0; layer < model.numLayers; layer++) {
    const prefix = `model.layers.${layer}`;
    Object.assign(shapes, {
      [`${prefix}.input_layernorm.weight`]: [hiddenSize],
      [`${prefix}.post_attention_layernorm.weight`]: [hiddenSize],
      [`${prefix}.self_attn.q_proj.weight`]: [q, hiddenSize],
      [`${prefix}.self_attn.k_proj.weight`]: [kv, hiddenSize],
      [`${prefix}.self_attn.v_proj.weight`]: [kv, hiddenSize],
      [`${prefix}.self_attn.o_proj.weight`]: [hiddenSize, q],
      [`${prefix}.mlp.gate_proj.weight`]: [intermediateSize, hiddenSize],
      [`${prefix}.mlp.up_proj.weight`]: [intermediateSize, hiddenSize],
      [`${prefix}.mlp.down_proj.weight`]: [hiddenSize, intermediateSize],
    });
    if (model.architecture === "Qwen2ForCausalLM") {
      for (const [part, rows] of [
        ["q", q],
        ["k", kv],
        ["v", kv],
      ] as const)
        shapes[`${prefix}.self_attn.${part}_proj.bias`] = [rows];
    }
    if (model.architecture === "Qwen3ForCausalLM") {
      for (const part of ["q", "k"]) shapes[`${prefix}.self_attn.${part}_norm.weight`] = [headDim];
    }
  }
  return new Map(Object.entries(shapes).map(([name, shape]) => [name, tensor(name, shape, types[name])]));
}

function checkpointOf(model: ModelConfig, tensors = tensorsOf(model)): Checkpoint {
  return {
    format: "safetensors",
    name: "test",
    path: ".",
    config: model,
    generation: {},
    tensors,
    tokenizer: {
      kind: "tokenizer.json",
      json: {},
      config: {
        bosToken: undefined,
        eosToken: undefined,
        unkToken: undefined,
        padToken: undefined,
        addBosToken: undefined,
        addEosToken: undefined,
        chatTemplate: undefined,
        namedChatTemplates: new Map(),
      },
    },
  };
}

/** Keeps what it was asked for and counts live handles. */
class RecordingBackend implements Pick<Backend, "mapFile" | "createMatrix" | "createVector" | "compile"> {
  readonly matrices: string[][] = [];
  readonly inPlace: (boolean | undefined)[] = [];
  readonly later: (boolean | undefined)[] = [];
  readonly programs: ProgramSpec[] = [];
  readonly failOn: string | undefined;
  live = 0;
  inFlight = 0;
  maxInFlight = 0;

  constructor(failOn?: string) {
    this.failOn = failOn;
  }

  #handle<T extends object>(fields: T): T & Disposable {
    this.live++;
    let disposed = false;
    return {
      ...fields,
      [Symbol.dispose]: () => {
        assert.ok(!disposed, "disposed twice");
        disposed = true;
        this.live--;
      },
    };
  }

  mapFile(path: string): ReturnType<Backend["mapFile"]> {
    return this.#handle({ path, byteLength: 1 });
  }

  async createMatrix(sources: readonly MatrixSource[], options: MatrixOptions = {}): Promise<Matrix> {
    this.inPlace.push(options.inPlace);
    this.later.push(options.packLater);
    this.maxInFlight = Math.max(this.maxInFlight, ++this.inFlight);
    await new Promise((resolve) => setImmediate(resolve));
    this.inFlight--;
    const names = sources.map((source) => source.name);
    if (this.failOn !== undefined && names.includes(this.failOn)) {
      throw new OctavoError("artifact_invalid", `Tensor "${this.failOn}" holds NaN.`);
    }
    this.matrices.push(names);
    const rows = sources.reduce((sum, source) => sum + source.rows, 0);
    return this.#handle({ rows, cols: sources[0]?.cols ?? 0, byteLength: 100 });
  }

  createVector(sources: Parameters<Backend["createVector"]>[0]): Vector {
    return this.#handle({ length: sources.reduce((sum, source) => sum + source.length, 0) });
  }

  compile(spec: ProgramSpec): ReturnType<Backend["compile"]> {
    this.programs.push(spec);
    return this.#handle({ kind: "program" as const });
  }
}

function asBackend(recorder: RecordingBackend): Backend {
  const unexpected = (): never => assert.fail("not part of loading");
  return {
    info: { name: "recording", instructionSet: "none", features: [], numThreads: 1 },
    mapFile: (path) => recorder.mapFile(path),
    createMatrix: (sources, options) => recorder.createMatrix(sources, options),
    createVector: (sources) => recorder.createVector(sources),
    compile: (spec) => recorder.compile(spec),
    createKvCache: unexpected,
    createSamplerState: unexpected,
    execute: unexpected,
    [Symbol.dispose]: unexpected,
  };
}

function throwsCode(code: string, pattern: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof OctavoError && error.code === code && pattern.test(error.message);
}

describe("planModel", () => {
  test("plans the layers of a checkpoint", () => {
    for (const architecture of [
      "LlamaForCausalLM",
      "MistralForCausalLM",
      "Qwen2ForCausalLM",
      "Qwen3ForCausalLM",
    ]) {
      const model = { ...config, architecture };
      const plan = planModel(model, tensorsOf(model));
      assert.equal(plan.ops.filter((op) => op.op === "attention").length, 2);
      assert.deepEqual(plan.unusedTensors, []);
    }
  });

  test("stacks projections of one type and splits mixed ones over columns of the same buffer", () => {
    const uniform = planModel(config, tensorsOf(config)).ops.filter((op) => op.op === "linear");
    assert.deepEqual(
      uniform.slice(0, 4).map((op) => op.weight.rows),
      [32, 16, 48, 16],
    );

    const mixed = planModel(config, tensorsOf(config, { "model.layers.0.self_attn.v_proj.weight": "q6_k" }));
    const [q, k, v] = mixed.ops.filter((op) => op.op === "linear");
    assert.deepEqual(
      [q?.out, k?.out, v?.out].map((out) => [out?.column, out?.width]),
      [
        [0, 16],
        [16, 8],
        [24, 8],
      ],
    );
    assert.ok(q?.out.buffer === v?.out.buffer);
  });

  test("qwen2 has biases on q, k and v alone; qwen3 normalises q and k per head", () => {
    const qwen2 = { ...config, architecture: "Qwen2ForCausalLM" };
    const linears = planModel(qwen2, tensorsOf(qwen2)).ops.filter((op) => op.op === "linear");
    assert.deepEqual(
      linears.slice(0, 4).map((op) => op.bias?.length),
      [32, undefined, undefined, undefined],
    );
    const qwen3 = { ...config, architecture: "Qwen3ForCausalLM" };
    const norms = planModel(qwen3, tensorsOf(qwen3)).ops.filter(
      (op) => op.op === "rms_norm" && op.groupSize === 4,
    );
    assert.equal(norms.length, 4);
  });

  test("hands each layer its own window", () => {
    const windows = planModel(config, tensorsOf(config)).ops.flatMap((op) =>
      op.op === "attention" ? [op.slidingWindow] : [],
    );
    assert.deepEqual(windows, [undefined, 8]);
  });

  test("names a missing tensor and what it should be", () => {
    const tensors = tensorsOf(config);
    tensors.delete("model.layers.1.mlp.up_proj.weight");
    assert.throws(
      () => planModel(config, tensors),
      throwsCode(
        "artifact_invalid",
        /lacks the tensor "model\.layers\.1\.mlp\.up_proj\.weight" \(\[24, 16\]\)/,
      ),
    );
  });

  test("names both shapes where they differ", () => {
    const tensors = tensorsOf(config);
    tensors.set("model.norm.weight", tensor("model.norm.weight", [17]));
    assert.throws(
      () => planModel(config, tensors),
      throwsCode("artifact_invalid", /has the shape \[17\]; .* implies \[16\]/),
    );
  });

  test("refuses quantised vectors and unknown architectures", () => {
    assert.throws(
      () => planModel(config, tensorsOf(config, { "model.norm.weight": "q8_0" })),
      throwsCode("artifact_unsupported", /stored as q8_0/),
    );
    assert.throws(
      () => planModel({ ...config, architecture: "GptMysteryModel" }, new Map()),
      throwsCode("artifact_unsupported", /"GptMysteryModel" is not supported\. Supported: LlamaForCausalLM/),
    );
  });

  test("reports tensors it does not read, except those that repeat the configuration", () => {
    const tensors = tensorsOf(config);
    for (const name of ["model.layers.0.self_attn.rotary_emb.inv_freq", "vision.weight"])
      tensors.set(name, tensor(name, [2]));
    assert.deepEqual(planModel(config, tensors).unusedTensors, ["vision.weight"]);
  });
});

describe("loadModel", () => {
  test("weights stay in their files where that is asked for and no cache is to keep them packed", async () => {
    const bf16 = Object.fromEntries([...tensorsOf(config).keys()].map((name) => [name, "bf16"] as const));
    const mixed = { ...bf16, "lm_head.weight": "q8_0" } as const;
    for (const [types, asked, hasCache, expected] of [
      [bf16, undefined, false, false],
      [mixed, true, false, true],
      [mixed, true, true, false],
      [bf16, true, true, true],
    ] as const) {
      const recorder = new RecordingBackend();
      const cache = hasCache ? new WeightCache({ folder: "/nowhere" }) : undefined;
      const checkpoint = checkpointOf(config, tensorsOf(config, types));
      using _ = await loadModel(asBackend(recorder), checkpoint, { maxTokens: 8, cache, inPlace: asked });
      assert.ok(recorder.inPlace.length > 5);
      assert.ok(recorder.inPlace.every((inPlace) => inPlace === expected));
    }
  });

  test("packs each weight once, reports progress and closes the files", async () => {
    const recorder = new RecordingBackend();
    const model = { ...config, tieWordEmbeddings: true };
    const progress: [number, number][] = [];
    const loaded = await loadModel(asBackend(recorder), checkpointOf(model), {
      maxTokens: 32,
      onProgress: (packed, total) => progress.push([packed, total]),
    });
    const [spec] = recorder.programs;
    const embedding = spec?.ops.find((op) => op.op === "embedding");
    assert.ok(
      embedding !== undefined && embedding.weight === spec?.head.weight,
      "tied head shares the handle",
    );
    assert.equal(recorder.matrices.length, 1 + 2 * 4);
    assert.equal(spec?.maxTokens, 32);
    assert.equal(loaded.weightBytes, 900);
    assert.deepEqual(progress.at(-1)?.[0], progress.at(-1)?.[1]);
    assert.equal(progress.length, 9);
    loaded[Symbol.dispose]();
    assert.equal(recorder.live, 0);
  });

  test("leaves packing for later from a size on, and not to a backend that leaves nothing", async () => {
    const bytes = [...tensorsOf(config).values()]
      .filter(({ shape }) => shape.length === 2)
      .reduce((sum, { byteLength }) => sum + byteLength, 0);
    for (const [packLaterFrom, expected] of [
      [undefined, false],
      [bytes + 1, false],
      [bytes, true],
    ] as const) {
      const recorder = new RecordingBackend();
      using loaded = await loadModel(asBackend(recorder), checkpointOf(config), {
        maxTokens: 8,
        packLaterFrom,
      });
      assert.ok(recorder.later.length > 5 && recorder.later.every((later) => later === expected));
      await loaded.packed;
    }
  });

  test("hands the backend enough matrices to keep its threads busy", async () => {
    const recorder = new RecordingBackend();
    const loaded = await loadModel(asBackend(recorder), checkpointOf({ ...config, numLayers: 12 }), {
      maxTokens: 8,
    });
    assert.equal(recorder.maxInFlight, 32);
    loaded[Symbol.dispose]();
  });

  test("leaves nothing behind when a weight is refused", async () => {
    const recorder = new RecordingBackend("model.layers.1.self_attn.o_proj.weight");
    await assert.rejects(
      loadModel(asBackend(recorder), checkpointOf(config), { maxTokens: 8 }),
      throwsCode("artifact_invalid", /holds NaN/),
    );
    assert.equal(recorder.live, 0);
    assert.equal(recorder.inFlight, 0);
  });

  test("stops between weights when aborted", async () => {
    const recorder = new RecordingBackend();
    const controller = new AbortController();
    const loading = loadModel(asBackend(recorder), checkpointOf({ ...config, numLayers: 12 }), {
      maxTokens: 8,
      signal: controller.signal,
      onProgress: () => controller.abort(),
    });
    await assert.rejects(loading, throwsCode("request_cancelled", /aborted/));
    // Those that the backend had been handed are packed; the rest of the 50 is not.
    assert.ok(recorder.matrices.length <= 33);
    assert.equal(recorder.live, 0);
  });
});
