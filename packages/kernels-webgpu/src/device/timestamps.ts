/** WebGPU's flags, as in gpu.ts. */
const usage = { mapRead: 1, copySrc: 4, copyDst: 8, queryResolve: 512 } as const;
const mapModeRead = 1;

/** As many as a query set may hold, by WebGPU's specification. */
const queriesPerSet = 4096;

interface QuerySet {
  readonly queries: GPUQuerySet;
  readonly resolved: GPUBuffer;
}

/** Readings of the GPU's own clock at the borders of compute passes. Query sets are made as they are needed, and kept. */
export class Timestamps {
  readonly #device: GPUDevice;
  readonly #sets: QuerySet[] = [];
  #numQueries = 0;

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** Forgets what was asked of an encoder that was never submitted. */
  begin(): void {
    this.#numQueries = 0;
  }

  /** What makes a pass of the encoder read the clock when it begins and ends. */
  pass(): GPUComputePassTimestampWrites {
    const index = this.#numQueries % queriesPerSet;
    const at = Math.floor(this.#numQueries / queriesPerSet);
    this.#numQueries += 2;
    const { queries: querySet } = (this.#sets[at] ??= this.#make());
    return { querySet, beginningOfPassWriteIndex: index, endOfPassWriteIndex: index + 1 };
  }

  /**
   * Ends what is asked of one encoder. What it returns is to be called once the commands are submitted: it resolves to nanoseconds, two for
   * each pass.
   */
  end(encoder: GPUCommandEncoder): () => Promise<BigUint64Array> {
    const count = this.#numQueries;
    this.#numQueries = 0;
    const staging = this.#device.createBuffer({
      size: Math.max(8, 8 * count),
      usage: usage.mapRead | usage.copyDst,
    });
    for (let first = 0; first < count; first += queriesPerSet) {
      const { queries, resolved } = (this.#sets[first / queriesPerSet] ??= this.#make());
      const held = Math.min(queriesPerSet, count - first);
      encoder.resolveQuerySet(queries, 0, held, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, staging, 8 * first, 8 * held);
    }
    return async () => {
      await staging.mapAsync(mapModeRead);
      const times = new BigUint64Array(staging.getMappedRange().slice(0, 8 * count));
      staging.destroy();
      return times;
    };
  }

  #make(): QuerySet {
    return {
      queries: this.#device.createQuerySet({ type: "timestamp", count: queriesPerSet }),
      resolved: this.#device.createBuffer({
        size: 8 * queriesPerSet,
        usage: usage.queryResolve | usage.copySrc,
      }),
    };
  }
}

/** Milliseconds between two readings; adapters may say that a clock went back. */
export function millisecondsBetween(from = 0n, to = 0n): number {
  return to > from ? Number(to - from) / 1e6 : 0;
}
