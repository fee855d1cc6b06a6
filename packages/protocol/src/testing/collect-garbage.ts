import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Collects garbage until a condition holds, for some seconds at most: whether it holds then is for the test to say. */
export async function collectGarbage(until: () => boolean): Promise<void> {
  setFlagsFromString("--expose_gc");
  const gc = runInNewContext("gc") as () => void;
  for (let round = 0; round < 200 && !until(); round++) {
    // what a WeakRef was asked for stays until the job ends
    await sleep(5);
    gc();
    await sleep(0);
  }
}
