import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, Matrix, MatrixOptions, MatrixSource, ProgramSpec, Vector } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { loadModel } from "./load-model.js";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import { tensorsOf, tinyConfig } from "@octavo/artifacts/testing/tiny-tensors";
import { WeightCache } from "./weight-cache/weight-cache.js";

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

describe("loadModel", () => {
  test("reads weights in place if requested and no cache holds them packed", async () => {
    const bf16 = Object.fromEntries([...tensorsOf(tinyConfig).keys()].map((name) => [name, "bf16"] as const));
    const mixed = { ...bf16, "lm_head.weight": "q8_0" } as const;
    for (const [types, asked, hasCache, expected] of [
      [bf16, undefined, false, false],
      [mixed, true, false, true],
      [mixed, true, true, false],
      [bf16, true, true, true],
    ] as const) {
      const recorder = new RecordingBackend();
      const cache = hasCache ? new WeightCache({ folder: "/nowhere" }) : undefined;
      const checkpoint = checkpointOf(tinyConfig, tensorsOf(tinyConfig, types));
      using _ = await loadModel(asBackend(recorder), checkpoint, { maxTokens: 8, cache, inPlace: asked });
      assert.ok(recorder.inPlace.length > 5);
      assert.ok(recorder.inPlace.every((inPlace) => inPlace === expected));
    }
  });

  test("packs each weight once, reports progress and closes the files", async () => {
    const recorder = new RecordingBackend();
    const model = { ...tinyConfig, tieWordEmbeddings: true };
    const progress: [number, number][] = [];
    const loaded = await loadModel(asBackend(recorder), checkpointOf(model), {
      maxTokens: 32,
      onProgress: (packed, total) => progress.push([packed, total]),
    });
    const [spec] = recorder.programs;
    const embedding = spec?.ops.find((op) => op.op === "embedding");
    assert.ok(
      embedding !== undefined && embedding.weight === spec?.head?.weight,
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

  test("packs later from a size on, if the backend can", async () => {
    const bytes = [...tensorsOf(tinyConfig).values()]
      .filter(({ shape }) => shape.length === 2)
      .reduce((sum, { byteLength }) => sum + byteLength, 0);
    for (const [packLaterFrom, expected] of [
      [undefined, false],
      [bytes + 1, false],
      [bytes, true],
    ] as const) {
      const recorder = new RecordingBackend();
      using loaded = await loadModel(asBackend(recorder), checkpointOf(tinyConfig), {
        maxTokens: 8,
        packLaterFrom,
      });
      assert.ok(recorder.later.length > 5 && recorder.later.every((later) => later === expected));
      await loaded.packed;
    }
  });

  test("gives the backend enough matrices to keep its threads busy", async () => {
    const recorder = new RecordingBackend();
    const loaded = await loadModel(asBackend(recorder), checkpointOf({ ...tinyConfig, numLayers: 12 }), {
      maxTokens: 8,
    });
    assert.equal(recorder.maxInFlight, 32);
    loaded[Symbol.dispose]();
  });

  test("disposes everything when a weight is refused", async () => {
    const recorder = new RecordingBackend("model.layers.1.self_attn.o_proj.weight");
    await assert.rejects(
      loadModel(asBackend(recorder), checkpointOf(tinyConfig), { maxTokens: 8 }),
      throwsCode("artifact_invalid", /holds NaN/),
    );
    assert.equal(recorder.live, 0);
    assert.equal(recorder.inFlight, 0);
  });

  test("stops between weights when aborted", async () => {
    const recorder = new RecordingBackend();
    const controller = new AbortController();
    const loading = loadModel(asBackend(recorder), checkpointOf({ ...tinyConfig, numLayers: 12 }), {
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
