import type { ObserverList } from "../evidence/observer-list.js";
import type { RequestRegistry } from "../requests/request-registry.js";
import { IntList } from "../kv-cache/int-list.js";
import { PrefixChain } from "../kv-cache/prefix-cache.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import { prefixSalt, Sequence } from "../scheduler/sequence.js";
import { FaultInjector } from "./fault-injector.js";

/** Injects faults into a running engine's parts. */
export function createFaultInjector(
  scheduler: Scheduler,
  requests: RequestRegistry,
  observers: ObserverList,
): FaultInjector {
  return new FaultInjector({
    get running() {
      return scheduler.running;
    },
    get waiting() {
      return scheduler.waiting;
    },
    faultsOf: (sequence) => requests.of(sequence).faults,
    preempt: (sequence) => scheduler.preempt(sequence),
    evict: (what) => {
      if (what === undefined) scheduler.evict();
      else if (what instanceof Sequence) scheduler.evict(what.prefix);
      else {
        const tokens = IntList.sharing(what.promptTokens);
        scheduler.evict(new PrefixChain(tokens, prefixSalt({ cacheSalt: what.cacheSalt })));
      }
    },
    onInjected: (kind) => observers.notify("onFault", kind),
  });
}
