import { OctavoError } from "@octavo/protocol";
import { type ConventionName, conventionNames } from "./conventions/convention.js";
import { tracesBelow } from "./export/otlp-address.js";
import { OtlpExporter } from "./export/otlp-exporter.js";
import type { SpanSink } from "./export/span-sink.js";
import type { Attributes } from "./span/llm-span.js";
import { parseTraceContext, type TraceContext } from "./span/trace-context.js";
import { Tracing } from "./tracing.js";

/** What OpenTelemetry's API calls a span's context; `trace.getActiveSpan()?.spanContext()` has this shape. */
export interface ForeignSpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** What `register` sends and where; OpenTelemetry's environment variables give the defaults. */
export interface RegisterOptions {
  /** `service.name`; default: `OTEL_SERVICE_NAME`, else `unknown_service`. */
  readonly serviceName?: string;
  /** Further attributes of the process. */
  readonly resource?: Attributes;
  /**
   * A collector's address for OTLP over HTTP, to which `/v1/traces` is added where it has no path; default:
   * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, then `OTEL_EXPORTER_OTLP_ENDPOINT`, to whose path it is always added. With none of them
   * spans go to `sinks` alone.
   */
  readonly endpoint?: string;
  /** Sent with every batch, e.g. a key; default: `OTEL_EXPORTER_OTLP_HEADERS`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Vocabularies of the attributes; default OpenTelemetry's alone. */
  readonly conventions?: readonly ConventionName[];
  /** Other takers of spans, such as a local store. */
  readonly sinks?: readonly SpanSink[];
  /** Share of new traces that are kept; default 1. */
  readonly sampleRatio?: number;
  /**
   * Keep prompts and answers. Off unless asked for here or with
   * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`: they are the users', not the operator's.
   */
  readonly captureContent?: boolean;
  /** Default 65536, for what is asked and what is answered each. */
  readonly maxContentCharacters?: number;
  /** Whose API the clients speak; default `openai`. */
  readonly provider?: string;
  /** Asked at each call for the active span of another tracing library. */
  readonly parent?: () => ForeignSpanContext | undefined;
  /** Called for spans that could not be delivered, at most once a minute; default: a process warning. */
  readonly onProblem?: (message: string) => void;
}

/** Sets tracing up: where spans go and what they hold. Throws `invalid_option` naming the option at fault. */
export function register(options: RegisterOptions = {}): Tracing {
  const { env } = process;
  const conventions = options.conventions ?? ["opentelemetry"];
  const sampleRatio = options.sampleRatio ?? 1;
  const maxContentCharacters = options.maxContentCharacters ?? 65_536;
  const unknown = conventions.find((name) => !conventionNames.includes(name));
  if (unknown !== undefined)
    refuse("conventions", `expected some of ${conventionNames.join(", ")}, got ${JSON.stringify(unknown)}`);
  if (!(sampleRatio >= 0 && sampleRatio <= 1))
    refuse("sampleRatio", `expected a share from 0 to 1, got ${sampleRatio}`);
  if (!Number.isSafeInteger(maxContentCharacters) || maxContentCharacters < 0)
    refuse("maxContentCharacters", `expected a count, got ${maxContentCharacters}`);
  const endpoint = options.endpoint ?? endpointFrom(env);
  const exporter =
    endpoint === undefined || endpoint === ""
      ? []
      : [
          new OtlpExporter({
            endpoint,
            conventions,
            headers: options.headers ?? headersFrom(env["OTEL_EXPORTER_OTLP_HEADERS"]),
            resource: {
              "service.name": options.serviceName ?? env["OTEL_SERVICE_NAME"] ?? "unknown_service",
              ...options.resource,
            },
            onProblem: options.onProblem ?? ((message) => process.emitWarning(message, "OctavoTracing")),
          }),
        ];
  const { parent } = options;
  return new Tracing({
    sinks: [...exporter, ...(options.sinks ?? [])],
    sampleRatio,
    captureContent:
      options.captureContent ??
      env["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"]?.toLowerCase() === "true",
    maxContentCharacters,
    provider: options.provider ?? "openai",
    parent: parent === undefined ? undefined : () => contextOf(parent),
  });
}

function contextOf(parent: () => ForeignSpanContext | undefined): TraceContext | undefined {
  try {
    const found = parent();
    if (found === undefined) return undefined;
    const flags = (found.traceFlags & 0xff).toString(16).padStart(2, "0");
    return parseTraceContext(`00-${found.traceId}-${found.spanId}-${flags}`);
  } catch {
    return undefined;
  }
}

/** An empty variable counts as none, as OpenTelemetry has it. */
function endpointFrom(env: NodeJS.ProcessEnv): string | undefined {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own = "", OTEL_EXPORTER_OTLP_ENDPOINT: base = "" } = env;
  if (own !== "") return own;
  return base === "" ? undefined : tracesBelow(base);
}

/** `name=value,name=value` with percent-encoded values, as OpenTelemetry's environment variables have it. */
function headersFrom(text: string | undefined): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const pair of (text ?? "").split(",")) {
    const at = pair.indexOf("=");
    if (at <= 0) continue;
    const value = pair.slice(at + 1).trim();
    try {
      headers[pair.slice(0, at).trim()] = decodeURIComponent(value);
    } catch {
      headers[pair.slice(0, at).trim()] = value;
    }
  }
  return headers;
}

function refuse(param: string, message: string): never {
  throw new OctavoError("invalid_option", `${param}: ${message}`, { param });
}
