import type { AdapterSite, Matrix } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { Gpu } from "../device/gpu.js";
import type { MatrixStorage } from "../handles.js";
import { packedShape } from "../weights/pack-matrix.js";
import { adapterDownShader, adapterUpShader } from "../wgsl/adapters.js";
import { tileRows } from "../wgsl/matrix-forms.js";
import type { Arena, ArenaPlace } from "./arena.js";
import type { DispatchPlan } from "./dispatch.js";

interface AdaptedSite {
  readonly down: MatrixStorage;
  readonly parts: readonly { readonly column: number; readonly scale: number; readonly up: MatrixStorage }[];
}

/** Numbers adapters, which rows of a step name them by. */
let nextNumber = 0;

/** Low-rank matrices of one adapter, kept in memory by its handle. */
export class AdapterBody implements Disposable {
  readonly number = nextNumber++;
  readonly #sites: ReadonlyMap<number, AdaptedSite>;

  constructor(sites: readonly AdapterSite[], storageOf: (matrix: Matrix) => MatrixStorage) {
    const entries = sites.map(({ site, down, parts }): readonly [number, AdaptedSite] => [
      site,
      {
        down: storageOf(down),
        parts: parts.map(({ column, up, scale }) => ({ column, scale, up: storageOf(up) })),
      },
    ]);
    this.#sites = new Map(entries);
    for (const memory of this.#memories()) memory.retain();
  }

  /** What it adds to the linear at a site: dispatches over the step's rows that are under it. */
  plan(gpu: Gpu, arena: Arena, site: number, from: ArenaPlace, to: ArenaPlace): DispatchPlan[] {
    const adapted = this.#sites.get(site);
    if (adapted === undefined) return [];
    const { down, parts } = adapted;
    const low = arena.scratch;
    if (down.rows > low.width)
      throw new OctavoError(
        "artifact_unsupported",
        `The adapter's ranks at site ${site} are ${down.rows}, more than this program is wide.`,
      );
    const downShader = adapterDownShader(down.form);
    const plans: DispatchPlan[] = [
      {
        shader: downShader,
        params: { ...this.#params(down), ...places(from, low) },
        buffers: buffersOf(gpu, down),
        launch: ({ tokens }) => ({ shader: downShader, size: [down.rows, tokens, 1] }),
      },
    ];
    let rank = 0;
    for (const { column, scale, up } of parts) {
      const upShader = adapterUpShader(up.form);
      const source = { ...low, at: low.at + rank };
      const target = { ...to, at: to.at + column };
      plans.push({
        shader: upShader,
        params: { ...this.#params(up), ...places(source, target), scale },
        buffers: buffersOf(gpu, up),
        launch: ({ tokens }) => ({ shader: upShader, size: [Math.ceil(up.rows / 64), tokens, 1] }),
      });
      rank += up.cols;
    }
    return plans;
  }

  #params({ form, rows, cols }: MatrixStorage): Record<string, number> {
    const { chunks, groups } = packedShape(form, cols);
    const paddedRows = Math.ceil(rows / tileRows) * tileRows;
    return { adapter: this.number, cols, outRows: rows, chunks, groups, paddedRows };
  }

  *#memories(): Iterable<MatrixStorage["memory"]> {
    for (const { down, parts } of this.#sites.values()) {
      yield down.memory;
      for (const { up } of parts) yield up.memory;
    }
  }

  [Symbol.dispose](): void {
    for (const memory of this.#memories()) memory.release();
  }
}

function places(from: ArenaPlace, to: ArenaPlace): Record<string, number> {
  return { src: from.at, srcStride: from.stride, dst: to.at, dstStride: to.stride };
}

function buffersOf(gpu: Gpu, { parts }: MatrixStorage): GPUBuffer[] {
  const [part, second] = parts;
  if (part === undefined || second !== undefined)
    throw new OctavoError("out_of_memory", "A matrix of the adapter is more than this GPU binds at a time.");
  return [part.codes, part.scales ?? gpu.nothing];
}
