import { OctavoError } from "@octavo/protocol/errors";
import type { Gpu } from "./gpu.js";

/** Between two tries, at first and at most. */
const firstWaitMs = 50;
const mostWaitMs = 2_000;

/**
 * The same GPU again, tried until it is there: another one would go on with other bits. Rejects with `device_lost` when the time is over.
 */
export async function reopenGpu(
  open: () => Promise<Gpu>,
  description: string,
  withinMs: number,
): Promise<Gpu> {
  const deadline = performance.now() + withinMs;
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, mostWaitMs)) {
    let reason: string;
    try {
      const gpu = await open();
      if (gpu.description === description) return gpu;
      reason = `only ${gpu.description} is there`;
      gpu[Symbol.dispose]();
    } catch (error) {
      reason = OctavoError.from(error).message;
    }
    const leftMs = deadline - performance.now();
    if (leftMs <= 0)
      throw new OctavoError(
        "device_lost",
        `${description} was lost and did not come back within ${withinMs / 1000} s: ${reason}`,
      );
    await new Promise<void>((resume) => setTimeout(resume, Math.min(waitMs, leftMs)));
  }
}
