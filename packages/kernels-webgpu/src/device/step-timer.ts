import { millisecondsBetween, Timestamps } from "./timestamps.js";

/** How long the GPU works on what a command encoder holds, by its own clock. */
export class StepTimer {
  readonly #clock: Timestamps;

  constructor(device: GPUDevice) {
    this.#clock = new Timestamps(device);
  }

  begin(encoder: GPUCommandEncoder): void {
    this.#clock.begin();
    this.#mark(encoder);
  }

  /** What is to be called once the commands are submitted: resolves to milliseconds. */
  end(encoder: GPUCommandEncoder): () => Promise<number> {
    this.#mark(encoder);
    const read = this.#clock.end(encoder);
    return async () => {
      const [, from, to] = await read();
      return millisecondsBetween(from, to);
    };
  }

  /** A pass of nothing: one for each dispatch would be slower. */
  #mark(encoder: GPUCommandEncoder): void {
    encoder.beginComputePass({ timestampWrites: this.#clock.pass() }).end();
  }
}
