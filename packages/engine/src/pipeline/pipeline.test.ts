import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createCpuBackend } from "@octavo/kernels";
import { createRankedBackend } from "@octavo/kernels/ranked-backend";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import {
  ChangedCheckpoint,
  fixtureCheckpoint,
  readModelFixtures,
} from "@octavo/artifacts/testing/model-fixtures";
import { OctavoError } from "@octavo/protocol/errors";
import { LLM } from "../llm/llm.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { assertSameAnswers } from "../testing/oracles/same-answers.js";
import { encodeFrame, FrameReader } from "./frames.js";
import type { StageLoad } from "./messages.js";
import { openPipeline } from "./open-pipeline.js";
import { StageClient } from "./stage-client.js";
import { createStageServer } from "./stage-server.js";
import { stagedBackend } from "./staged-backend.js";

const MAX_TOKENS = 400;
const folder = mkdtempSync(join(tmpdir(), "octavo-pipeline-"));
const address = join(folder, "stages");
const server = createStageServer();

before(async () => {
  server.listen(address);
  await once(server, "listening");
});
after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

function loadOf({ path, name }: Checkpoint, more: Partial<StageLoad> = {}): Omit<StageLoad, "stage"> {
  using backend = createCpuBackend({ numThreads: 1 });
  const { instructionSet, features } = backend.info;
  return {
    path,
    name,
    numRanks: 1,
    numThreads: 1,
    kernels: "features",
    maxTokens: MAX_TOKENS,
    maxModelLen: MAX_TOKENS,
    inPlace: false,
    kernelFeatures: [instructionSet, ...features].join(" "),
    ...more,
  };
}

async function compare(
  checkpoint: Checkpoint,
  prompt: readonly number[],
  { count = 2, numRanks = 1 } = {},
): Promise<void> {
  const numThreads = numRanks;
  using alone = createCpuBackend({ numThreads: 1 });
  using last = createRankedBackend({ numRanks, numThreads });
  const clients: StageClient[] = [];
  try {
    for (let index = 0; index < count - 1; index++) {
      const client = await StageClient.connect(address, `stage ${index}`);
      clients.push(client);
      const load = { ...loadOf(checkpoint, { numRanks, numThreads }), stage: { index, count } };
      await client.ask({ kind: "load", load }, "loaded");
    }
    using expected = await ModelRunner.load(alone, checkpoint, MAX_TOKENS, "f32");
    const stage = { index: count - 1, count };
    using actual = await ModelRunner.load(last, checkpoint, MAX_TOKENS, "f32", { stage }, (backend, model) =>
      stagedBackend(backend, clients, model),
    );
    await assertSameAnswers(actual, expected, prompt);
  } finally {
    for (const client of clients) client[Symbol.dispose]();
  }
}

describe("stages give the bits of one", () => {
  for (const fixture of readModelFixtures()) {
    test(fixture.name, async () => {
      using changed = new ChangedCheckpoint(fixture.checkpoint, fixture.config);
      await compare(await openCheckpoint(changed.path), fixture.long.prompt.slice(0, 60));
    });
  }

  test("stages of ranks", async () => {
    for (const name of ["llama3", "qwen2"]) {
      const checkpoint = await openCheckpoint(fixtureCheckpoint(name));
      await compare(checkpoint, [5, 6, 7, 8, 9], { numRanks: 2 });
    }
  });
});

describe("what goes wrong", () => {
  test("more stages than layers", async () => {
    const checkpoint = await openCheckpoint(fixtureCheckpoint("llama3"));
    await assert.rejects(compare(checkpoint, [1], { count: 40 }), {
      code: "invalid_option",
      message: /pipeline_parallel_size is 40, but the model's layers cannot be divided/,
    });
  });

  test("a stage without the files, or with other kernels, says so", async () => {
    const checkpoint = await openCheckpoint(fixtureCheckpoint("llama3"));
    const stage = { index: 0, count: 2 };
    using client = await StageClient.connect(address, "stage 0");
    const missing = { ...loadOf(checkpoint, { path: "/nowhere/model" }), stage };
    await assert.rejects(client.ask({ kind: "load", load: missing }, "loaded"), {
      code: "artifact_not_found",
      message: /^stage 0: .*nowhere/,
    });
    const other = { ...loadOf(checkpoint, { kernelFeatures: "abacus" }), stage };
    await assert.rejects(client.ask({ kind: "load", load: other }, "loaded"), {
      code: "invalid_option",
      message: /abacus/,
    });
    const plan = { numTokens: 1, numSequences: 1, hasTypes: false, hasStates: false, hasRows: false };
    await assert.rejects(client.ask({ kind: "step", plan }, "done"), /has loaded nothing yet/);
  });

  test("a stage that is killed ends the step and those after it", async () => {
    const checkpoint = await openCheckpoint(fixtureCheckpoint("llama3"));
    using backend = createCpuBackend({ numThreads: 1 });
    using stages = await openPipeline(loadOf(checkpoint), 2);
    await stages.loaded;
    const stage = { index: 1, count: 2 };
    using runner = await ModelRunner.load(backend, checkpoint, MAX_TOKENS, "f32", { stage }, stages.behind);
    await runner.logits([1, 2, 3]);
    const steps = [runner.logits([4])];
    process.kill(stages.processIds[0] ?? 0, "SIGKILL");
    await Promise.allSettled(steps);
    for (let step = 0; step < 2; step++)
      await assert.rejects(runner.logits([5]), {
        code: "engine_failed",
        message: /stage 0 of 2 of the model is gone/,
      });
  });

  test("what is no message closes the connection", async () => {
    for (const bytes of [Buffer.alloc(8, 255), Buffer.from([2, 0, 0, 0, 0, 0, 0, 0, 123, 125])]) {
      const socket = connect(address);
      socket.write(bytes);
      socket.resume();
      await once(socket, "close");
    }
  });

  test("options that do not go with ranks or stages", async () => {
    for (const options of [{ tensorParallelSize: 2 }, { pipelineParallelSize: 2 }]) {
      await assert.rejects(
        LLM.load(fixtureCheckpoint("llama3"), { ...options, numThreads: 2, enableLora: true }),
        {
          code: "invalid_option",
          param: "enable_lora",
        },
      );
    }
    const corrupt = { enableFaultInjection: true, corruptWeights: { seed: 1, scale: 0.1 } };
    const load = LLM.load(fixtureCheckpoint("llama3"), { pipelineParallelSize: 2, ...corrupt });
    await assert.rejects(load, { param: "pipeline_parallel_size" });
  });
});

test("frames come whole out of any pieces", () => {
  const frames = [
    { head: { kind: "step" }, arrays: [Int32Array.of(1, -2), Float32Array.of(0.5), new Int32Array(0)] },
    { head: "next", arrays: [] },
  ];
  const bytes = Buffer.concat(frames.flatMap(encodeFrame));
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new FrameReader();
    const read = [];
    for (let at = 0; at < bytes.length; at += size) read.push(...reader.push(bytes.subarray(at, at + size)));
    assert.deepEqual(read, frames);
  }
  assert.throws(() => new FrameReader().push(Buffer.alloc(8, 255)), OctavoError);
});
