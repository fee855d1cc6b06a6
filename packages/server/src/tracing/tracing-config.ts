import { OctavoError } from "@octavo/protocol";
import { checkOtlpEndpoint, conventionNames, OtlpExporter, type SpanSink } from "@octavo/tracing";
import { redact } from "@octavo/text/sensitive/redact";
import type { Logger } from "pino";
import type { ServerConfig } from "../config.js";
import type { ServedModels } from "../models/served-models.js";
import { serverVersion } from "../version.js";
import { resourceOf, serverAddressOf } from "./resource.js";
import type { ContentPolicy } from "../account/content-capture.js";
import { ServerTracing } from "../account/server-tracing.js";

type TracingConfig = Pick<
  ServerConfig,
  "otlpEndpoint" | "otlpMetricsEndpoint" | "otlpHeaders" | "traceConventions"
>;

/** Throws `invalid_option` naming the option. */
export function checkTracingConfig(config: TracingConfig): void {
  const refuse = (param: string, message: string): never => {
    throw new OctavoError("invalid_option", `${param}: ${message}`, { param });
  };
  const { otlpEndpoint, otlpMetricsEndpoint, otlpHeaders, traceConventions } = config;
  if (traceConventions.length === 0)
    refuse("traceConventions", `expected some of ${conventionNames.join(", ")}, got none`);
  for (const [name, value] of Object.entries(otlpHeaders)) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(value))
      refuse("otlpHeaders", `${JSON.stringify(name.slice(0, 100))} is not a header name`);
  }
  if (otlpEndpoint !== "") checkOtlpEndpoint(otlpEndpoint);
  if (otlpMetricsEndpoint !== "") checkOtlpEndpoint(otlpMetricsEndpoint, "otlpMetricsEndpoint");
}

/** Undefined if spans go nowhere. */
export function createServerTracing(
  models: ServedModels,
  config: ServerConfig,
  log: Logger,
  spanSinks: readonly SpanSink[],
): ServerTracing | undefined {
  const sinks = [...(config.otlpEndpoint === "" ? [] : [createExporter(config, log)]), ...spanSinks];
  const content = contentPolicy(config);
  if (content !== undefined) {
    if (sinks.length === 0)
      throw new OctavoError(
        "invalid_option",
        "traceContent: content is kept on spans, and these spans go nowhere: set otlpEndpoint or a trace store",
        { param: "traceContent" },
      );
    log.warn(
      `spans carry what clients ask and what they are answered (traceContent: ${config.traceContent})`,
    );
  }
  if (sinks.length === 0) return undefined;
  return new ServerTracing({
    sinks,
    sampleRatio: config.traceSampleRatio,
    modelOf: (name) => {
      const { model, modelNames } = models.named(name);
      return { engine: model.engine, quantization: model.config.dtype, modelName: modelNames[0] };
    },
    engineVersion: serverVersion,
    replicaId: config.replicaId === "" ? undefined : config.replicaId,
    attributes: config.traceAttributes,
    server: serverAddressOf(config),
    content,
  });
}

function contentPolicy(config: ServerConfig): ContentPolicy | undefined {
  if (config.traceContent === "none") return undefined;
  return {
    maxCharacters: config.traceContentMaxCharacters,
    sampleRatio: config.traceContentSampleRatio,
    tenants: config.traceContentTenants,
    ...(config.traceContent === "redacted" && { redact }),
  };
}

function createExporter(config: ServerConfig, log: Logger): OtlpExporter {
  return new OtlpExporter({
    endpoint: config.otlpEndpoint,
    headers: config.otlpHeaders,
    conventions: config.traceConventions,
    resource: resourceOf(config),
    onProblem: (message) => log.warn(message),
  });
}
