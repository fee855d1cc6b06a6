// `node:timers/promises`.
function sleep(milliseconds, value, { signal } = {}) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = globalThis.setTimeout(() => resolve(value), milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

const nextTurn = (value) => new Promise((resolve) => globalThis.setImmediate(() => resolve(value)));

export { nextTurn as setImmediate, sleep as setTimeout };
