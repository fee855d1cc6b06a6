import type { Spread } from "@octavo/protocol";

/**
 * One call of a language model as it was seen from one side of the wire. Every convention and every exporter is a
 * rendering of this record; nothing else is kept of a call. Times in ms, on the wall clock where they are points.
 */
export interface LlmSpan {
  readonly identity: SpanIdentity;
  readonly side: "client" | "server";
  readonly operation: LlmOperation;
  /** Milliseconds since 1970, with fractions. */
  readonly startEpochMs: number;
  readonly durationMs: number;
  readonly outcome: SpanOutcome;
  /** Whose API was spoken, as OpenTelemetry's `gen_ai.provider.name` lists them, or the engine's own name. */
  readonly provider: string;
  readonly server: ServerAddress | undefined;
  readonly request: LlmRequestFacts;
  readonly response: LlmResponseFacts;
  readonly usage: TokenUsage;
  readonly stream: StreamTimes | undefined;
  /** What only the engine knows; undefined on the client's side. */
  readonly serving: ServingFacts | undefined;
  readonly context: SpanContextAttributes;
  /** Undefined unless capturing was asked for. */
  readonly content: CapturedContent | undefined;
}

/** A span's place in its trace, as W3C's trace context has it. */
export interface SpanIdentity {
  /** 32 lower-case hexadecimal digits, not all 0. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits, not all 0. */
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly traceState: string | undefined;
}

/** Kinds of calls, by the names of OpenTelemetry's `gen_ai.operation.name`. */
export type LlmOperation = "chat" | "text_completion" | "embeddings" | "rerank";

/**
 * How a call ended. `stopped`: the reader left a stream before its end; `aborted`: the call was cancelled;
 * `abandoned`: nobody read its answer and it was collected as garbage or the process ended.
 */
export type SpanOutcome =
  | { readonly kind: "ok" | "stopped" | "abandoned" }
  | {
      readonly kind: "error" | "aborted";
      /** Low cardinality: an error code or the name of an error class. */
      readonly errorType: string;
      readonly message: string | undefined;
    };

/** Where a call went. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number | undefined;
}

/** What a request asked for, as far as it said so. */
export interface LlmRequestFacts {
  readonly model?: string;
  readonly stream?: boolean;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly maxTokens?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly seed?: number;
  readonly stopSequences?: readonly string[];
  /** Asked-for alternatives (`n`). */
  readonly choiceCount?: number;
  readonly outputType?: "text" | "json";
  readonly encodingFormats?: readonly string[];
  /** Conversation or thread that the provider keeps. */
  readonly conversationId?: string;
}

/** What an answer said of itself. */
export interface LlmResponseFacts {
  readonly id?: string;
  readonly model?: string;
  readonly finishReasons?: readonly string[];
  readonly httpStatus?: number;
  readonly systemFingerprint?: string;
  readonly serviceTier?: string;
  /** The server's id of the request, for people and logs. */
  readonly requestId?: string;
  readonly embeddingDimensions?: number;
  /** Names of tools that the answer calls, in order. */
  readonly toolNames?: readonly string[];
}

/** Tokens as the server counted them; absent where it said nothing. */
export interface TokenUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheReadInputTokens?: number;
  readonly cacheWriteInputTokens?: number;
  readonly reasoningOutputTokens?: number;
}

/** When the parts of a stream came, in ms. */
export interface StreamTimes {
  /** From the request to the first chunk of any kind. */
  readonly timeToFirstChunkMs: number | undefined;
  /** From the request to the first output: text, reasoning or a part of a tool call. */
  readonly timeToFirstTokenMs: number | undefined;
  readonly chunks: number;
  /** Between outputs, in order of arrival. */
  readonly gaps: GapStatistics;
  /** Time that the reader kept the stream waiting: a slow reader's gaps are its own. */
  readonly readerMs: number | undefined;
}

/** Percentiles are within 1 % of the exact ones; undefined where there were no gaps. */
export interface GapStatistics {
  readonly count: number;
  readonly meanMs: number | undefined;
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  readonly maxMs: number | undefined;
}

/** Evidence of how the engine served a request. */
export interface ServingFacts {
  /** By which the engine's evidence, and other requests' culprits, name the request. */
  readonly requestId: string | undefined;
  readonly engineVersion: string;
  readonly quantization: string | undefined;
  /** Which of several servers it was. */
  readonly replicaId: string | undefined;
  /** Requests that waited when it came. */
  readonly queueDepth: number | undefined;
  readonly queueMs: number | undefined;
  readonly timeToFirstTokenMs: number | undefined;
  readonly prefillMs: number | undefined;
  readonly decodeMs: number | undefined;
  /** The request's part of the backend's computing time. */
  readonly kernelMs: number | undefined;
  /** Output waited for its reader so long. */
  readonly readerLagMs: number | undefined;
  readonly gaps: GapStatistics | undefined;
  readonly preemptions: number | undefined;
  readonly recomputedTokens: number | undefined;
  readonly blocksEvicted: number | undefined;
  /** Draft tokens of the request that steps verified, and how many of them were accepted. */
  readonly draftTokens: number | undefined;
  readonly acceptedDraftTokens: number | undefined;
  /** Prompt tokens that had been cached, and were evicted before the request came. */
  readonly evictedPrefixTokens: number | undefined;
  /** Cached prompt tokens over prompt tokens, 0 to 1. */
  readonly cacheHitRatio: number | undefined;
  /** Sequences in the steps that computed the request. */
  readonly batchSize: Spread | undefined;
  /** Prompt tokens of others in those steps. */
  readonly prefillTokensInBatch: Spread | undefined;
  /** What most of the time to the first token went to. */
  readonly firstTokenCause: string | undefined;
  readonly slowestGap: SlowestGap | undefined;
}

/** The gap that was furthest beyond what is usual, and why. */
export interface SlowestGap {
  readonly ms: number;
  readonly usualMs: number;
  readonly cause: string;
  /** The engine's id of the other request that had the greatest hand in it. */
  readonly culprit: string | undefined;
}

export type { Spread };

/** What the caller said of its calls with `usingAttributes`, and what the transport told. */
export interface SpanContextAttributes {
  readonly sessionId?: string;
  readonly userId?: string;
  readonly tenantId?: string;
  /** Whose the call is on its server: a tenant or a key. Content of one owner is no other's to read. */
  readonly ownerId?: string;
  /** What the caller uses the model for, as its server was told. */
  readonly feature?: string;
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly promptTemplate?: PromptTemplate;
  /** Attributes under names of the caller's own; they win over rendered ones of the same name. */
  readonly attributes?: Attributes;
}

/** The prompt that a call was rendered from, where the caller names it. */
export interface PromptTemplate {
  readonly template?: string;
  readonly version?: string;
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** What OpenTelemetry's attributes may hold. */
export type AttributeValue =
  | string
  | number
  | boolean
  | readonly string[]
  | readonly number[]
  | readonly boolean[];
/** Attributes of a span, a metric or a process, by name. */
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** What was asked and answered, kept where `captureContent` says so, cut and redacted. */
export interface CapturedContent {
  readonly systemInstructions: readonly MessagePart[];
  readonly inputMessages: readonly CapturedMessage[];
  readonly outputMessages: readonly CapturedMessage[];
  /** As the request had them. */
  readonly toolDefinitions: readonly unknown[];
  /** Prompts of a text completion, inputs of an embedding. */
  readonly prompts: readonly string[];
}

/** One message of a call's content. */
export interface CapturedMessage {
  readonly role: string;
  readonly parts: readonly MessagePart[];
  /** Output messages only. */
  readonly finishReason?: string;
}

/** Parts of messages, named as OpenTelemetry's message schema names them. */
export type MessagePart =
  | { readonly type: "text"; readonly content: string }
  | { readonly type: "reasoning"; readonly content: string }
  | {
      readonly type: "tool_call";
      readonly id: string | undefined;
      readonly name: string;
      /** JSON text as the model wrote it. */
      readonly arguments: string;
    }
  | { readonly type: "tool_call_response"; readonly id: string | undefined; readonly response: string }
  /** An image, audio or file: its kind alone, never its bytes. */
  | { readonly type: "media"; readonly kind: string };
