import { describe, test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { ChangedCheckpoint, readModelFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { compareChoices, compareGreedy, compareLogits } from "../testing/oracles/model-oracle-suite.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";

const gpu = await openTestGpu();

/** One of each kind of op; all models before a release (`npm run test:all -- --full`), and where the machine's own adapter is tested. */
const few = ["llama3", "gemma2", "gpt-oss", "qwen3-5", "deepseek-v3", "llama4"];
const { OCTAVO_TEST_GPU: ownAdapter, OCTAVO_TEST_FULL: isFull } = process.env;
const fixtures = readModelFixtures().filter(
  ({ name }) => ownAdapter !== undefined || isFull !== undefined || few.includes(name),
);

/** Relative to the largest logit of a row. Weights keep their codes and are multiplied in f32, but those of MXFP4 become f16. */
const tolerance = { f32: 2e-5, f16: 1e-4, bf16: 1e-4, quantized: 2e-3 } as const;

describe(
  "models on the WebGPU backend against transformers",
  { skip: typeof gpu === "string" && gpu },
  () => {
    for (const fixture of fixtures) {
      test(fixture.name, async () => {
        if (typeof gpu === "string") return;
        using backend = createWebGpuBackend(gpu);
        using folder = new ChangedCheckpoint(fixture.checkpoint, fixture.config);
        const checkpoint = await openCheckpoint(folder.path);
        const { dtype, vocabSize } = checkpoint.config;
        const maxTokens = fixture.prompt.length + fixture.greedy.length;
        using runner = await ModelRunner.load(backend, checkpoint, maxTokens, "f32");
        await compareLogits(runner, fixture, vocabSize, tolerance[dtype]);
        if (dtype === "f32") await compareGreedy(runner, fixture);
        else await compareChoices(runner, fixture, tolerance[dtype]);
      });
    }
  },
);
