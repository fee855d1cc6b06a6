import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { readSafetensorsFolder } from "@octavo/artifacts/safetensors/safetensors-folder";
import { fixtureCheckpoint, fixtureDrafting } from "@octavo/artifacts/testing/model-fixtures";
import { createCpuBackend, kvLayersOf } from "@octavo/kernels";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import { loadHead, openHead } from "../../llm/load-head.js";
import { resolveLoadOptions } from "../../llm/load-options.js";
import { loadModel } from "../../model/load-model.js";
import { resolveSpeculativeConfig, type SpeculativeConfig } from "../../speculation/speculative-config.js";
import type { ModelUnderTest } from "../schedules/schedule-properties.js";

const octavoMini = fileURLToPath(new URL("../../../../../models/octavo-mini", import.meta.url));

/** Written by tools/oracle/make-drafting-fixtures.py. */
export const draftingNames = ["eagle3", "glm4-moe", "deepseek-v3", "qwen3-next", "qwen3-5"] as const;
export type DraftingName = (typeof draftingNames)[number];

/** What the published algorithm drafts behind each of a model's greedy tokens. */
export interface DraftingCase {
  readonly prompt: readonly number[];
  readonly greedy: readonly number[];
  readonly drafts: readonly (readonly number[])[];
}

export function readDraftingCases(name: DraftingName): DraftingCase[] {
  return JSON.parse(readFileSync(fixtureDrafting(`${name}.json`), "utf8")) as DraftingCase[];
}

/** A model's folder and the drafting head that goes with it. */
export interface DraftingPair {
  readonly model: string;
  readonly config: SpeculativeConfig;
}

/** The embedded model with the head that was trained for it. */
export const embeddedPair: DraftingPair = {
  model: octavoMini,
  config: { method: "eagle3", model: join(octavoMini, "eagle3"), numSpeculativeTokens: 4 },
};

/** Made of fixtures. */
export class DraftingFolder implements DraftingPair, Disposable {
  readonly model: string;
  readonly config: SpeculativeConfig;
  readonly #scratch = mkdtempSync(join(tmpdir(), "octavo-drafting-"));

  /** @param checkpoint another than the head was drawn for, of the same shape */
  constructor(name: DraftingName, checkpoint = fixtureCheckpoint(name)) {
    this.model = this.#scratch;
    this.config = { method: "mtp", numSpeculativeTokens: 3 };
    if (name === "eagle3") {
      this.model = fixtureDrafting("llama");
      this.config = { method: "eagle3", model: fixtureDrafting("eagle3"), numSpeculativeTokens: 3 };
      return;
    }
    cpSync(checkpoint, this.model, { recursive: true });
    const names = [...(readSafetensorsFolder(this.model)?.keys() ?? [])];
    copyFileSync(fixtureDrafting(`${name}.safetensors`), join(this.model, "extra.safetensors"));
    rmSync(join(this.model, "model.safetensors"));
    copyFileSync(join(checkpoint, "model.safetensors"), join(this.model, "own.safetensors"));
    const layer = new Map<string, string>(names.map((tensor) => [tensor, "own.safetensors"]));
    const header = readFileSync(join(this.model, "extra.safetensors"));
    const length = Number(header.readBigUInt64LE(0));
    for (const tensor of Object.keys(JSON.parse(header.toString("utf8", 8, 8 + length)) as object))
      if (tensor !== "__metadata__") layer.set(tensor, "extra.safetensors");
    writeFileSync(
      join(this.model, "model.safetensors.index.json"),
      JSON.stringify({ weight_map: Object.fromEntries(layer) }),
    );
  }

  [Symbol.dispose](): void {
    rmSync(this.#scratch, { recursive: true, force: true });
  }
}

/** A model on the CPU with its drafting head, for suites that run their own engines. */
export async function openHeadModel(name: DraftingName): Promise<ModelUnderTest> {
  using folder = new DraftingFolder(name);
  return await openDraftingPair(folder, 64);
}

export async function openDraftingPair(folder: DraftingPair, maxModelLen: number): Promise<ModelUnderTest> {
  const backend = createCpuBackend({ numThreads: 2 });
  const checkpoint = await openCheckpoint(folder.model);
  const options = resolveLoadOptions({ maxModelLen });
  const opened = await openHead(resolveSpeculativeConfig(folder.config), checkpoint, options);
  if (opened === undefined) throw new TypeError(`${folder.model} has no head`);
  const maxTokens = 2 * maxModelLen;
  const model = await loadModel(backend, checkpoint, { maxTokens, plan: opened.planModel });
  const sizes = { maxNumBatchedTokens: maxTokens, maxNumSeqs: 128 };
  const head = await loadHead(opened, 4, { backend, checkpoint, model, sizes, options });
  const { vocabSize, hiddenSize, eosTokenIds } = checkpoint.config;
  return {
    parts: {
      backend,
      program: model.program,
      tokenizer: createTokenizer(checkpoint.tokenizer),
      vocabSize,
      hiddenSize,
      eosTokenIds,
      kv: {
        layers: [...kvLayersOf(opened.planModel(checkpoint.config).ops), ...opened.kvLayers],
        dtype: "f32",
      },
      ...(model.stateWidths(0).length > 0 && { stateWidths: (drafts) => model.stateWidths(drafts) }),
      maxModelLen,
      createDrafter: head.options.createDrafter,
    },
    maxStepTokens: maxTokens,
    dispose: () => {
      head.owned[Symbol.dispose]();
      model[Symbol.dispose]();
      backend[Symbol.dispose]();
    },
  };
}
