// Globals of Node that the engine uses.
import { Buffer } from "./buffer.mjs";

const { port1: arrivals, port2: departures } = new MessageChannel();
const waiting = [];

/** Before the engine is imported. */
export function provideGlobals() {
  arrivals.addEventListener("message", () => waiting.shift()?.());
  arrivals.start();
  Object.assign(globalThis, {
    Buffer,
    /** Between two events of the page; a timer of 0 ms would wait for 4. */
    setImmediate: (callback) => {
      waiting.push(callback);
      departures.postMessage(undefined, []);
    },
    process: {
      env: {},
      platform: "browser",
      /** Browsers round it, and say no more than 8 GiB; the KV cache of a GPU does not depend on it. */
      availableMemory: () => (navigator.deviceMemory ?? 4) * 2 ** 30,
      constrainedMemory: () => 0,
      emitWarning: (text) => reportError(new Error(text)),
    },
  });
}
