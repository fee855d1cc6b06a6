import type { KvCache } from "@octavo/kernels";
import { EvidenceLog } from "./evidence/evidence-log.js";
import { FaultInjector } from "./faults/fault-injector.js";
import { BlockPool } from "./kv-cache/block-pool.js";
import { Scheduler } from "./scheduler/scheduler.js";
import { SequenceStates } from "./scheduler/sequence-states.js";
import { Speculation } from "./speculation/speculation.js";
import type { ActiveRequest } from "./requests/active-request.js";
import { AdmissionQueue } from "./admission/admission-queue.js";
import { CrashJournal } from "./admission/crash-journal.js";
import type { ResolvedEngineOptions } from "./engine-options.js";
import { ObserverList } from "./evidence/observer-list.js";
import { Quarantine } from "./admission/quarantine.js";
import { RequestRegistry } from "./requests/request-registry.js";

/** State shared by accepting requests and running steps. */
export interface EngineParts {
  readonly options: ResolvedEngineOptions;
  readonly pool: BlockPool;
  /** Slots of recurrent state, as blocks; undefined where the model keeps none. */
  readonly statePool: BlockPool | undefined;
  readonly cache: KvCache;
  readonly scheduler: Scheduler;
  readonly speculation: Speculation | undefined;
  readonly queue: AdmissionQueue<ActiveRequest>;
  readonly requests: RequestRegistry;
  /** Undefined unless enabled. */
  readonly journal: CrashJournal | undefined;
  readonly quarantine: Quarantine;
  readonly observers: ObserverList;
  readonly evidence: EvidenceLog;
  /** Undefined unless enabled. */
  readonly faults: FaultInjector | undefined;
}

export function createEngineParts(options: ResolvedEngineOptions): EngineParts {
  const { backend, numBlocks, blockSize, crashJournal, onWarning = () => undefined } = options;
  const journal = crashJournal === undefined ? undefined : new CrashJournal(crashJournal, onWarning);
  const quarantine = new Quarantine(journal);
  const observers = new ObserverList();
  const pool = new BlockPool(numBlocks, blockSize);
  const statePool = options.states && new BlockPool(options.states.numSlots, blockSize);
  const states = statePool && new SequenceStates(statePool, blockSize, options.stateSnapshotInterval);
  const scheduler = new Scheduler(pool, { ...options, policy: options.schedulingPolicy }, states);
  const queue = new AdmissionQueue<ActiveRequest>({
    maxRequests: options.maxQueuedRequests,
    maxTokens: options.maxQueuedTokens,
    maxRequestsPerTenant: options.maxQueuedRequestsPerTenant,
    maxTokensPerTenant: options.maxQueuedTokensPerTenant,
    isShared: options.schedulingPolicy === "fair",
  });
  const cache = backend.createKvCache({
    ...options.kv,
    numBlocks,
    blockSize,
    ...(options.states !== undefined && { states: options.states }),
  });
  const speculation = options.speculation && new Speculation(options.speculation, pool, cache, scheduler);
  const requests = new RequestRegistry(
    scheduler,
    queue,
    observers,
    (sequence) => speculation?.release(sequence),
    (request, isComplete) => journal?.ended(request, isComplete),
  );
  const evidence = new EvidenceLog(options.hiddenSize, blockSize, (settled) =>
    observers.notify("onSettled", settled),
  );
  const faults = options.enableFaultInjection ? new FaultInjector(scheduler, requests, observers) : undefined;
  return {
    options,
    pool,
    statePool,
    cache,
    scheduler,
    speculation,
    queue,
    requests,
    journal,
    quarantine,
    observers,
    evidence,
    faults,
  };
}
