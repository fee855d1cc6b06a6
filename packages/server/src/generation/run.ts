import type {
  Engine,
  GenerationEvent,
  GenerationRequest,
  SequenceDelta,
  TokenLogprob,
  Usage,
} from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";

/** What generation needs of the HTTP request it is for. */
export type Caller = Pick<RequestContext, "octavoId" | "arrivalMs" | "signal" | "account" | "hold">;

/**
 * Queues requests so that refusals (queue full, context too long) are thrown before anything is answered: the promise rejects if
 * the engine refuses any of them at once, and resolves otherwise. After a rejection the caller aborts `signal`, which ends the
 * requests already queued.
 */
export async function startGenerations(
  engine: Engine,
  requests: readonly GenerationRequest[],
  { account, signal }: Caller,
): Promise<readonly AsyncIterable<GenerationEvent>[]> {
  const admitted = new Promise<void>((resolve) => setImmediate(resolve));
  const started = requests.map((request) => {
    account.queued();
    try {
      const iterator = engine.generate(request, signal)[Symbol.asyncIterator]();
      const first = iterator.next();
      // it may fail with nobody waiting: a later request was refused, or another one is being read
      first.catch(() => {});
      return { iterator, first };
    } catch (refusal) {
      account.refused();
      throw refusal;
    }
  });
  await Promise.all(started.map(({ first }) => Promise.race([first, admitted])));
  return started.map(({ iterator, first }) => resume(iterator, first));
}

/** The events from `first` on. Not a generator, which would add promises to every event. */
function resume(
  iterator: AsyncIterator<GenerationEvent>,
  first: Promise<IteratorResult<GenerationEvent>>,
): AsyncIterable<GenerationEvent> {
  let pending: Promise<IteratorResult<GenerationEvent>> | undefined = first;
  const rest: AsyncIterator<GenerationEvent> = {
    next: () => {
      const result = pending ?? iterator.next();
      pending = undefined;
      return result;
    },
    return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
  };
  return { [Symbol.asyncIterator]: () => rest };
}

export type LogitsDigests = readonly (readonly string[])[];
type TokenLogprobs = readonly (TokenLogprob | undefined)[];

/** What a request's events carry besides its deltas. */
export interface GenerationEnd {
  readonly promptLogprobs: TokenLogprobs | undefined;
  readonly usage: Usage;
  /** By sequence, if requested. */
  readonly logitsDigests: LogitsDigests | undefined;
}

export interface GenerationReader {
  /** `finish` is undefined until the sequence is complete. */
  onDelta(
    delta: SequenceDelta,
    finish: "stop" | "length" | undefined,
    promptLogprobs: TokenLogprobs | undefined,
  ): void;
  /** Called after the deltas of each event; the next event waits for it. */
  flush?(): Promise<void>;
}

/** Reads a request to its end. Throws when it ended before all of its sequences did: an aborted one is never an answer. */
export async function readGeneration(
  engine: Engine,
  events: AsyncIterable<GenerationEvent>,
  signal: AbortSignal,
  reader: GenerationReader,
): Promise<GenerationEnd> {
  let promptLogprobs: TokenLogprobs | undefined;
  let usage: Usage | undefined;
  let logitsDigests: LogitsDigests | undefined;
  for await (const event of events) {
    if (event.kind === "prompt") ({ promptLogprobs } = event);
    else if (event.kind === "done") ({ usage, logitsDigests } = event);
    else {
      for (const delta of event.deltas) {
        const { finishReason } = delta;
        if (finishReason === "abort") throw endedEarly(engine, signal);
        reader.onDelta(delta, finishReason, promptLogprobs);
      }
      await reader.flush?.();
    }
  }
  if (usage === undefined || signal.aborted) throw endedEarly(engine, signal);
  return { promptLogprobs, usage, logitsDigests };
}

export interface SequenceResult {
  text: string;
  readonly tokens: number[];
  readonly logprobs: TokenLogprob[];
  finishReason: "stop" | "length" | undefined;
  stopReason: string | number | undefined;
}

export interface CollectedGeneration extends GenerationEnd {
  readonly sequences: readonly SequenceResult[];
}

/** Everything a request produced. */
export async function collectGeneration(
  engine: Engine,
  events: AsyncIterable<GenerationEvent>,
  n: number,
  signal: AbortSignal,
): Promise<CollectedGeneration> {
  const sequences: SequenceResult[] = Array.from({ length: n }, () => ({
    text: "",
    tokens: [],
    logprobs: [],
    finishReason: undefined,
    stopReason: undefined,
  }));
  const onDelta: GenerationReader["onDelta"] = (delta, finish) => {
    const sequence = sequences[delta.index];
    if (sequence === undefined) return;
    sequence.text += delta.text;
    for (const token of delta.tokens) sequence.tokens.push(token);
    for (const logprob of delta.logprobs ?? []) sequence.logprobs.push(logprob);
    if (finish === undefined) return;
    sequence.finishReason = finish;
    sequence.stopReason = delta.stopReason;
  };
  return { sequences, ...(await readGeneration(engine, events, signal, { onDelta })) };
}

function endedEarly(engine: Engine, signal: AbortSignal): OctavoError {
  if (signal.aborted) return OctavoError.from(signal.reason);
  return (
    engine.failure ??
    new OctavoError(
      "shutting_down",
      "the server is shutting down and ended this request before it was complete",
    )
  );
}
