import type { Backend, OutputRow, RowResult, RowSampling } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { LoadedAdapter } from "../adapters/adapter.js";
import type { Deadlines, FinishedRequest, ServingRecord, Usage } from "../api.js";
import type { EvidenceLog, ObservedRequest } from "../evidence/evidence-log.js";
import type { RequestFaults } from "../faults/fault.js";
import { RequestTimeline } from "../evidence/request-timeline.js";
import { ServedAdapter } from "../adapters/served-adapter.js";
import { type Account, defaultAccount } from "../scheduler/account.js";
import type { PromptImage } from "../scheduler/prompt-image.js";
import type { Sequence, SequenceGroup } from "../scheduler/sequence.js";
import type { SpeculatedRequest } from "../speculation/speculation.js";
import type { ObserverList } from "../evidence/observer-list.js";
import type { StopAutomaton } from "./stop-matcher.js";

/** The parts of the engine that its requests use. */
export interface EngineContext {
  readonly backend: Backend;
  readonly vocabSize: number;
  readonly maxModelLen: number;
  readonly eosTokenIds: ReadonlySet<number>;
  readonly stopAutomatonOf: (stops: readonly string[]) => StopAutomaton;
  /** For a request without a seed. */
  readonly nextSeed: () => bigint;
  readonly badWordsOf: (words: readonly string[]) => readonly Int32Array[];
  readonly observers: ObserverList;
  readonly evidence: EvidenceLog;
}

/** Receives the output rows that a sequence wants of a step, in order of position. */
export interface RowSink {
  addRow(position: number, row: OutputRow): void;
}

/** A request inside the engine: which rows its sequences want of each step, and what to do with the results. */
export abstract class ActiveRequest implements SequenceGroup, ObservedRequest, SpeculatedRequest {
  readonly requestId: string;
  readonly owner: object | undefined;
  readonly order: number;
  readonly priority: number;
  readonly cacheSalt: string | undefined;
  readonly account: Account;
  readonly deadlines: Deadlines;
  readonly faults: RequestFaults | undefined;
  readonly timeline: RequestTimeline;
  readonly #evidence: EvidenceLog;
  readonly adapter: ServedAdapter | undefined;
  readonly images: readonly PromptImage[] | undefined;
  abstract readonly sequences: readonly Sequence[];
  /** Called once, when the request is over. */
  onOver: (() => void) | undefined;
  /** The reader has its last event; a step that still computes the request is discarded. */
  #isOver = false;

  protected constructor(
    request: {
      readonly requestId: string;
      readonly owner?: object | undefined;
      readonly arrivalMs?: number;
      readonly priority?: number;
      readonly cacheSalt?: string;
      readonly account?: Account;
      readonly deadlines?: Deadlines;
      readonly grammarMs?: number;
      readonly adapter?: LoadedAdapter | undefined;
      readonly faults?: RequestFaults | undefined;
      readonly images?: readonly PromptImage[] | undefined;
    },
    order: number,
    evidence: EvidenceLog,
  ) {
    this.requestId = request.requestId;
    this.owner = request.owner;
    this.order = order;
    this.priority = request.priority ?? 0;
    this.cacheSalt = request.cacheSalt;
    this.account = request.account ?? defaultAccount;
    this.deadlines = request.deadlines ?? {};
    this.faults = request.faults;
    this.timeline = new RequestTimeline(request, order);
    this.#evidence = evidence;
    this.adapter = servedAdapter(request.adapter);
    this.images = request.images;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get tenant(): string {
    return this.account.tenant;
  }

  get numPromptTokens(): number {
    return this.sequences[0]?.numPromptTokens ?? 0;
  }

  get promptTokens(): Int32Array {
    return this.sequences[0]?.tokens.slice(0, this.numPromptTokens) ?? new Int32Array(0);
  }

  get firstTokenDueMs(): number | undefined {
    const { firstTokenMs } = this.deadlines;
    return firstTokenMs === undefined ? undefined : this.timeline.arrivalMs + firstTokenMs;
  }

  get usage(): Usage {
    return {
      promptTokens: this.numPromptTokens,
      completionTokens: this.sequences.reduce((sum, sequence) => sum + sequence.numOutputTokens, 0),
      cachedTokens: this.sequences[0]?.cachedTokens ?? 0,
    };
  }

  get record(): ServingRecord {
    return this.timeline.record(this.sequences, this.#evidence.blockSize);
  }

  /** Creates what a sequence needs to run; called once, when it is first admitted. */
  abstract prepare(sequence: Sequence): void;
  /** Goes on with the mask of the next token; returns whether the sequence can be sampled. */
  prepareMask(_sequence: Sequence): boolean {
    return true;
  }
  /** 0 unless the request samples. */
  draftLimit(_sequence: Sequence): number {
    return 0;
  }
  cutDraft(_sequence: Sequence): void {}
  samplingOf(_sequence: Sequence): RowSampling | undefined {
    return undefined;
  }
  /** Adds the output rows wanted among the tokens that the step computes of `sequence`. */
  abstract addRows(sequence: Sequence, rows: RowSink): void;
  /** Takes the results of those rows, `results[start, end)`; returns whether the sequence is complete. */
  abstract applyRows(
    sequence: Sequence,
    results: readonly RowResult[],
    start: number,
    end: number,
    nowMs: number,
  ): boolean;
  /** Where tokens of type 1 begin, if any are. */
  get secondFrom(): number | undefined {
    return undefined;
  }
  /** Frees what `prepare` created. */
  abstract release(sequence: Sequence): void;
  /** Hands new events to the reader. */
  abstract deliver(): void;

  /** Ends the request for its reader: all sequences are complete, or it was aborted. */
  finish(isAborted: boolean, observers: ObserverList): void {
    if (this.#isOver) return;
    this.#end();
    const { usage, record } = this;
    const finished = this.conclude(isAborted, usage, record);
    const maxSequenceTokens = this.sequences.reduce(
      (most, { numOutputTokens }) => Math.max(most, numOutputTokens),
      0,
    );
    observers.notify("onFinished", {
      requestId: this.requestId,
      owner: this.owner,
      tenant: this.account.tenant,
      lane: this.account.lane ?? 0,
      usage,
      record,
      maxSequenceTokens,
      ...finished,
    });
    this.#evidence.settle(this);
  }

  fail(error: OctavoError): void {
    if (this.#isOver) return;
    this.#end();
    this.reject(error);
    this.#evidence.settle(this);
  }

  protected abstract conclude(
    isAborted: boolean,
    usage: Usage,
    record: ServingRecord,
  ): Pick<FinishedRequest, "reasons" | "n" | "maxTokens">;
  protected abstract reject(error: OctavoError): void;

  #end(): void {
    this.#isOver = true;
    this.timeline.endMs = performance.now();
    this.#evidence.end(this);
    this.onOver?.();
  }
}

function servedAdapter(adapter: LoadedAdapter | undefined): ServedAdapter | undefined {
  if (adapter === undefined) return undefined;
  if (adapter instanceof ServedAdapter) return adapter.current;
  throw new OctavoError(
    "invalid_request",
    "The adapter does not belong to this model; take one from its `adapters`.",
    { param: "adapter" },
  );
}
