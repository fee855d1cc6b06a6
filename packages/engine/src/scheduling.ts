/** The scheduler alone, as simulations run it: no backend, no weights. */
export { BlockPool } from "./kv-cache/block-pool.js";
export { PrefillPacer } from "./scheduler/prefill-pacer.js";
export { defaultLongPrefillTokenThreshold } from "./scheduler/scheduler-options.js";
export { Scheduler } from "./scheduler/scheduler.js";
export { Sequence, type SequenceGroup } from "./scheduler/sequence.js";
