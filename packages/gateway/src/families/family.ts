import type { JsonFields } from "@octavo/protocol";
import type { Operation } from "../exchange/exchange.js";

/** A request as one target is to get it. */
export interface WireRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
}

export interface WireCall {
  readonly operation: Operation;
  /** The target's name for the model. */
  readonly model: string;
  readonly isStream: boolean;
  /** In OpenAI's shape, with everything that the gateway changes but for `model`. */
  readonly fields: JsonFields;
  /** The fields as bytes where nothing was changed, so that they can be passed on as they came. */
  readonly bytes: Buffer | undefined;
  readonly apiVersion: string | undefined;
  readonly basePath: string;
}

/** One event of a stream in OpenAI's shape: as the target wrote it if that is its shape, and as an object. */
export interface StreamPart {
  /** The whole event with its blank line; undefined where it was translated. */
  readonly raw: string | undefined;
  readonly json: JsonFields;
}

/** Follows one stream of a target. Bytes may be cut anywhere. */
export interface StreamReader {
  /** Throws `target_answer_invalid` for what is not of the protocol, or the error that the target sent as an event. */
  push(chunk: Buffer): readonly StreamPart[];
  /** Whether the stream came to its proper end: `[DONE]`, `message_stop`, a last frame. */
  readonly isComplete: boolean;
}

/** A wire format, translated from and to OpenAI's. */
export interface WireFamily {
  readonly operations: readonly Operation[];
  /** Throws `unsupported_parameter` for what the format cannot say. */
  request(call: WireCall): WireRequest;
  /** A whole answer in OpenAI's shape; the object that came where it has that shape already. */
  answer(json: JsonFields, call: WireCall): JsonFields;
  /** `content-type` of its streams. */
  readonly streamType: string;
  reader(call: WireCall, limits: { readonly maxEventBytes: number }): StreamReader;
  /** The message and type of an error answer. */
  error(json: unknown): { readonly message: string | undefined; readonly type: string | undefined };
}
