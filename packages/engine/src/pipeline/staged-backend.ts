import type { Backend, KvCache, KvCacheSpec, StepPlan, StepResult } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { LoadedModel } from "../model/load-model.js";
import { packPlan } from "./messages.js";
import { ownCache } from "./own-cache.js";
import type { StageClient } from "./stage-client.js";

/** The last stage's cache; the others have theirs. */
class StagedCache implements KvCache {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly byteLength: number;
  readonly own: KvCache;

  constructor(own: KvCache) {
    this.numBlocks = own.numBlocks;
    this.blockSize = own.blockSize;
    this.byteLength = own.byteLength;
    this.own = own;
  }

  [Symbol.dispose](): void {
    this.own[Symbol.dispose]();
  }
}

/**
 * The backend of the last stage, behind `earlier` ones that run before it (pipeline parallelism): rows go from one to the next over sockets,
 * here the last samples. Its step costs what all stages cost together; what is gained is their memory.
 */
export function stagedBackend(last: Backend, earlier: readonly StageClient[], loaded: LoadedModel): Backend {
  let caches: Promise<unknown> = Promise.resolve();
  return {
    info: last.info,
    mapFile: (path) => last.mapFile(path),
    createMatrix: (sources, options) => last.createMatrix(sources, options),
    createVector: (sources) => last.createVector(sources),
    createSamplerState: (spec) => last.createSamplerState(spec),
    compile: (spec) => last.compile(spec),
    createKvCache(spec: KvCacheSpec): KvCache {
      caches = Promise.all(earlier.map((stage) => stage.ask({ kind: "cache", spec }, "made")));
      // Told by `settled`.
      caches.catch(() => undefined);
      return new StagedCache(last.createKvCache(ownCache(spec, loaded)));
    },
    async settled(): Promise<void> {
      await caches;
      await last.settled?.();
    },
    async execute(program, cache, plan): Promise<StepResult> {
      if (!(cache instanceof StagedCache))
        throw new OctavoError("internal_error", "A pipeline got the cache of another backend.");
      const started = performance.now();
      const before = earlier.map(({ bytes }) => bytes);
      let computeMs = 0;
      let rows: Float32Array | undefined;
      for (const stage of earlier) {
        const done = await runStage(stage, plan, rows);
        computeMs += done.computeMs;
        rows = done.rows;
      }
      const waitedMs = performance.now() - started - computeMs;
      const result = await last.execute(
        program,
        cache.own,
        rows === undefined ? plan : { ...plan, received: rows },
      );
      const bytes = earlier.reduce((sum, stage, index) => sum + stage.bytes - (before[index] ?? 0), 0);
      return {
        ...result,
        computeMs: computeMs + result.computeMs,
        exchanges: [...(result.exchanges ?? []), { bytes, milliseconds: waitedMs }],
      };
    },
    [Symbol.dispose]: () => {
      for (const stage of earlier) stage[Symbol.dispose]();
    },
  };
}

async function runStage(
  stage: StageClient,
  step: StepPlan,
  received: Float32Array | undefined,
): Promise<{ readonly computeMs: number; readonly rows: Float32Array }> {
  const { plan, arrays } = packPlan(step, received);
  const { reply, arrays: sent } = await stage.ask({ kind: "step", plan }, "done", arrays);
  const [rows] = sent;
  if (!(rows instanceof Float32Array))
    throw new OctavoError("engine_failed", "A stage of the model sent no rows.");
  return { computeMs: reply.computeMs, rows };
}
