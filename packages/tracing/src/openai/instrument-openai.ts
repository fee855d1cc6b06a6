import { OctavoError, asObject, type JsonFields } from "@octavo/protocol";
import type { Tracing } from "../tracing.js";
import { callKindOf } from "./call-kind.js";
import { ObservedCall } from "./observed-call.js";
import { isStream, observeStream } from "./observed-stream.js";
import { withTraceHeaders } from "./trace-headers.js";

/** The `OpenAI` class of the `openai` package, or one derived from it such as `AzureOpenAI`. */
export interface OpenAIClass {
  readonly prototype: object;
}

type Request = (this: unknown, options: unknown, ...rest: readonly unknown[]) => unknown;

/** The parts of openai's `APIPromise` through which an answer reaches its caller. */
interface AnswerPromise extends Promise<unknown> {
  responsePromise: Promise<unknown>;
  parseResponse: (...args: unknown[]) => unknown;
  asResponse: () => Promise<unknown>;
  _thenUnwrap?: (transform: unknown) => unknown;
}

const instrumented = new WeakSet<object>();

/**
 * Makes a span of every call that runs a model, of every client of the class, existing ones included. All call shapes
 * (`create`, `stream`, `parse`, tool runners, raw responses) pass the client's `request`, so that is where they are
 * watched; what callers get is what they would have got. Dispose to undo.
 * Throws `invalid_option` when the class has no `request` or is instrumented already.
 */
export function instrumentOpenAI(openai: OpenAIClass, tracing: Tracing): Disposable {
  const { prototype } = openai;
  const original: unknown = "request" in prototype ? prototype.request : undefined;
  if (typeof original !== "function") {
    throw new OctavoError(
      "invalid_option",
      "instrumentOpenAI: expected the OpenAI class of the openai package (5 or newer); this has no request method",
      { param: "openai" },
    );
  }
  if (isInstrumented(prototype)) {
    throw new OctavoError(
      "invalid_option",
      "instrumentOpenAI: this class, or one that it is derived from, is instrumented already; dispose that instrumentation first",
      { param: "openai" },
    );
  }
  instrumented.add(prototype);
  const own = Object.getOwnPropertyDescriptor(prototype, "request");
  const patched = observedRequest(original as Request, tracing);
  Object.defineProperty(prototype, "request", { value: patched, configurable: true, writable: true });
  return {
    [Symbol.dispose]() {
      if (!instrumented.delete(prototype)) return;
      if (own === undefined) Reflect.deleteProperty(prototype, "request");
      else Object.defineProperty(prototype, "request", own);
    },
  };
}

/** A derived class calls its parent's method: a call would be two spans. */
function isInstrumented(prototype: object): boolean {
  for (
    let one: unknown = prototype;
    typeof one === "object" && one !== null;
    one = Object.getPrototypeOf(one)
  ) {
    if (instrumented.has(one)) return true;
  }
  return false;
}

function observedRequest(original: Request, tracing: Tracing): Request {
  return function request(this: unknown, options: unknown, ...rest: readonly unknown[]): unknown {
    const call = new ObservedCall(tracing, asObject(this)?.["baseURL"]);
    const observed = isThenable(options)
      ? Promise.resolve(options).then((resolved: unknown) => beginCall(call, resolved))
      : beginCall(call, options);
    let answer: unknown;
    try {
      answer = original.call(this, observed, ...rest);
    } catch (thrown) {
      call.fail(thrown);
      throw thrown;
    }
    if (isAnswerPromise(answer)) observeAnswer(answer, call);
    else call.abandon();
    return answer;
  };
}

/** The options with the trace's headers, when they run a model. */
function beginCall(call: ObservedCall, options: unknown): unknown {
  const fields = asObject(options);
  const kind = callKindOf(fields?.["method"], fields?.["path"]);
  if (fields === undefined || kind === undefined || call.hasEnded) return options;
  return quietly(options, () => {
    const context = call.begin(kind, asObject(fields["body"]) ?? {});
    return { ...fields, headers: withTraceHeaders(fields["headers"], context) } satisfies JsonFields;
  });
}

function observeAnswer(answer: AnswerPromise, call: ObservedCall): void {
  const parse = answer.parseResponse;
  answer.responsePromise = answer.responsePromise.then(
    (props) => {
      quietly(undefined, () => call.responded(asObject(props)?.["response"]));
      return props;
    },
    (thrown: unknown) => {
      call.fail(thrown);
      throw thrown;
    },
  );
  answer.parseResponse = async (...args) => {
    call.isRead = true;
    let value: unknown;
    try {
      value = await parse.apply(answer, args);
    } catch (thrown) {
      call.fail(thrown);
      throw thrown;
    }
    quietly(undefined, () => {
      if (isStream(value)) observeStream(value, call);
      else call.answered(value);
    });
    return value;
  };
  watchRawResponse(answer, call);
  call.watchReader(answer, "answer");
}

/** A caller that takes the raw response reads it where nobody sees: its span ends with the headers. */
function watchRawResponse(answer: AnswerPromise, call: ObservedCall): void {
  const { asResponse, _thenUnwrap: thenUnwrap } = answer;
  const hide = (name: string, value: unknown): void => {
    Reflect.defineProperty(answer, name, { value, configurable: true, writable: true, enumerable: false });
  };
  hide("asResponse", async () => {
    const response = await asResponse.call(answer);
    if (!call.isRead) call.end({ kind: "ok" });
    return response;
  });
  if (thenUnwrap === undefined) return;
  hide("_thenUnwrap", (transform: unknown) => {
    const derived = thenUnwrap.call(answer, transform);
    if (isAnswerPromise(derived)) watchRawResponse(derived, call);
    return derived;
  });
}

function isAnswerPromise(value: unknown): value is AnswerPromise {
  if (!(value instanceof Promise)) return false;
  const { responsePromise, parseResponse, asResponse } = value as Partial<AnswerPromise>;
  return (
    responsePromise instanceof Promise &&
    typeof parseResponse === "function" &&
    typeof asResponse === "function"
  );
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof asObject(value)?.["then"] === "function";
}

/** Watching must never be why a call fails: bodies with throwing getters or toJSON are the caller's to find out about. */
function quietly<Value>(fallback: Value, watch: () => Value): Value {
  try {
    return watch();
  } catch {
    return fallback;
  }
}
