/** WebGPU's flags, as in gpu.ts. */
const usage = { mapRead: 1, copySrc: 4, copyDst: 8, queryResolve: 512 } as const;
const mapModeRead = 1;

/** Reads the GPU's own clock before and after what a command encoder holds. */
export class StepTimer {
  readonly #device: GPUDevice;
  readonly #marks: GPUQuerySet;
  readonly #resolved: GPUBuffer;

  constructor(device: GPUDevice) {
    this.#device = device;
    this.#marks = device.createQuerySet({ type: "timestamp", count: 2 });
    this.#resolved = device.createBuffer({ size: 16, usage: usage.queryResolve | usage.copySrc });
  }

  begin(encoder: GPUCommandEncoder): void {
    this.#mark(encoder, 0);
  }

  /** What is to be called once the commands are submitted: resolves to the milliseconds between both marks. */
  end(encoder: GPUCommandEncoder): () => Promise<number> {
    this.#mark(encoder, 1);
    const staging = this.#device.createBuffer({ size: 16, usage: usage.mapRead | usage.copyDst });
    encoder.resolveQuerySet(this.#marks, 0, 2, this.#resolved, 0);
    encoder.copyBufferToBuffer(this.#resolved, 0, staging, 0, 16);
    return async () => {
      await staging.mapAsync(mapModeRead);
      const [from = 0n, to = 0n] = new BigUint64Array(staging.getMappedRange());
      const nanoseconds = Number(to - from);
      staging.destroy();
      return nanoseconds / 1e6;
    };
  }

  /** A pass of nothing: one for each dispatch would be slower. */
  #mark(encoder: GPUCommandEncoder, index: number): void {
    const timestampWrites = { querySet: this.#marks, beginningOfPassWriteIndex: index };
    encoder.beginComputePass({ timestampWrites }).end();
  }
}
