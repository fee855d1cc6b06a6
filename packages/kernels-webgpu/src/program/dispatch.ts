import type { ArenaPlace } from "./arena.js";
import type { Shader } from "../wgsl/shader.js";

/** Rows and more that decide how large a step's dispatches are. */
export interface StepCounts {
  readonly tokens: number;
  readonly outputs: number;
  readonly sequences: number;
  readonly tiles: number;
  /** Segments of the longest context. */
  readonly segments: number;
  /** Rows whose most likely tokens are wanted. */
  readonly candidates: number;
}

/** Steps of every size at which dispatches choose another kernel: few rows, many, one segment of context, several. */
export function stepsOfAllSizes(maxTokens: number): StepCounts[] {
  const sizes = new Set(Array.from({ length: 7 }, (_, power) => Math.min(2 ** power, maxTokens)));
  return [...sizes, maxTokens].flatMap((rows) =>
    [1, 2, 8].map((segments) => ({
      tokens: rows,
      outputs: rows,
      sequences: rows,
      tiles: rows,
      segments,
      candidates: 1,
    })),
  );
}

export type Phase = "tokens" | "outputs";

/** What runs: a shader and the workgroups in each dimension. */
export interface Launch {
  readonly shader: Shader;
  readonly size: readonly [number, number, number];
}

/** A dispatch of a program, before it meets a cache. */
export interface DispatchPlan {
  readonly params: Readonly<Record<string, number>>;
  /** The kernel that the parameters belong to; all of its variants share its bindings. */
  readonly shader: Shader;
  readonly buffers: readonly GPUBuffer[];
  /** Only on the last dispatch of a linear that adapters can reach. */
  readonly site?: { readonly number: number; readonly from: ArenaPlace; readonly to: ArenaPlace } | undefined;
  /** Undefined where a step has nothing for it to do. */
  readonly launch: (counts: StepCounts) => Launch | undefined;
}

/** A dispatch ready to be encoded. */
export interface BoundDispatch {
  /** The op that it belongs to, by which it is timed. */
  readonly op: string;
  readonly site: DispatchPlan["site"];
  readonly group: GPUBindGroup;
  readonly launch: DispatchPlan["launch"];
}

/** Workgroups of 64 threads over `columns`, one row a y. */
export function overRows(
  shader: Shader,
  columns: number,
  phase: Phase,
): (counts: StepCounts) => Launch | undefined {
  const x = Math.ceil(columns / 64);
  return (counts) => (counts[phase] === 0 ? undefined : { shader, size: [x, counts[phase], 1] });
}
