import type { LanguageModel } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import type { SpanSink } from "@octavo/tracing";
import type { Logger } from "pino";
import type { ServerConfig } from "./config.js";
import { resolveServerConfig } from "./resolve-config.js";
import { ApiKeys } from "./http/api-keys.js";
import { CorsPolicy } from "./http/cors.js";
import { Dispatcher } from "./http/dispatcher.js";
import { createLogger } from "./logging.js";
import { HttpListener, type ListenAddress } from "./http/http-listener.js";
import { Router } from "./http/router.js";
import { registerEngineMetrics } from "./metrics/engine-metrics.js";
import { createDetectors } from "./detectors/create-detectors.js";
import { accountObserver } from "./account/request-account.js";
import { slowAnswer } from "./account/slow-answer.js";
import { Meter } from "./account/meter.js";
import type { MeteringLog } from "./account/metering-log.js";
import { HttpMetrics } from "./metrics/http-metrics.js";
import { registerProcessMetrics } from "./metrics/process-metrics.js";
import { Registry } from "@octavo/tracing/prometheus";
import { serverRoutes } from "./routes/endpoints.js";
import { servedNames } from "./served-names.js";
import { Service } from "./service.js";
import { readTls } from "./http/tls.js";
import { checkTenantSettings } from "./tenants/tenant-settings.js";
import { TenantLabels } from "./tenants/tenant-labels.js";
import { TenantResolver } from "./tenants/tenant-resolver.js";
import { createOtlpMetrics } from "./tracing/otlp-metrics.js";
import { createServerTracing } from "./tracing/tracing-config.js";
import { registerTenantMetrics } from "./metrics/tenant-metrics.js";
import { registerTraceMetrics } from "./metrics/trace-metrics.js";

export interface CreateServerOptions {
  readonly model: LanguageModel;
  readonly config?: Partial<ServerConfig>;
  /** Default: as `config.logLevel` and `config.logFormat` say. */
  readonly logger?: Logger;
  /** Span sinks in addition to `config.otlpEndpoint`; the server closes them. */
  readonly spanSinks?: readonly SpanSink[];
  /** Gets a cost record of each request; flushed when the server closes. */
  readonly meteringLog?: MeteringLog;
}

/** OpenAI-compatible HTTP over one language model, which the caller disposes. */
export interface OctavoServer extends AsyncDisposable {
  readonly config: ServerConfig;
  /** Throws `invalid_option` when the address cannot be used. */
  listen(): Promise<ListenAddress>;
  /**
   * Takes no new work (503, `/health` included) while running requests end, then closes. What still runs at the
   * deadline (default `config.drainTimeoutMs`) ends with a `shutting_down` error.
   */
  drain(deadlineMs?: number): Promise<void>;
  /**
   * Takes keys, tenants and the files of certificates as they are now, for new requests and connections; running ones go on. Throws
   * `invalid_option`, and changes nothing, where they are wrong or lanes changed.
   */
  reload(options: Pick<ServerConfig, "apiKeys" | "tenants">): void;
  /** Ends everything at once: running requests are aborted with a `shutting_down` error. */
  close(): Promise<void>;
}

/** Time to deliver the last spans and metrics when the server closes. */
const lastSpansMs = 3000;

/** Time to deliver the last alerts when the server closes. */
const lastAlertsMs = 2000;

/** Wires a model, its metrics and the endpoints into a server that is not listening yet. */
export function createServer({
  model,
  config: options,
  logger,
  spanSinks = [],
  meteringLog,
}: CreateServerOptions): OctavoServer {
  const config = resolveServerConfig(options);
  checkAdapterNames(model, config);
  const log = logger ?? createLogger(config);
  if (config.enableFaultInjection) allowFaults(model, log);
  const registry = Registry.create();
  const engineRegistry = registry.withLabels({
    model_name: servedNames(model, config)[0],
    engine: "0",
  });
  const observer = registerEngineMetrics(engineRegistry, model.engine, config);
  const metrics = new HttpMetrics(registry);
  const tracing = createServerTracing(model, config, log, spanSinks);
  const otlpMetrics = createOtlpMetrics(model, config, log);
  registerTraceMetrics(registry, tracing, otlpMetrics);
  const meter = new Meter(model, config, registry, meteringLog);
  const detectors = createDetectors(model, config, engineRegistry, log);
  const tenants = new TenantResolver(config.tenants, config.prefixCacheSharing);
  const keys = new ApiKeys(config.apiKeys, config.tenants.keys);
  const labels = new TenantLabels(Object.keys(config.tenants.tenants));
  const tenantObserver = registerTenantMetrics(engineRegistry, model.engine, tenants, labels);
  const service = new Service(model, config, registry, metrics, keys, tenants);
  const dispatcher = new Dispatcher({
    router: new Router(serverRoutes(service)),
    keys,
    cors: new CorsPolicy(config.corsOrigins),
    isDraining: () => service.isDraining,
    queueDepth: () => model.engine.queueDepth,
    accessLog: config.accessLog,
    rootPath: config.rootPath,
    explain: (slowest) => slowAnswer(model.engine, slowest),
  });
  const listener = new HttpListener({
    config,
    dispatcher,
    metrics,
    log,
    keys,
    tenants,
    tracing,
    onOver: [
      (exchange) => dispatcher.log(exchange),
      (exchange) => meter.finish(exchange),
      (exchange) => tracing?.finish(exchange),
      (exchange) => otlpMetrics?.finish(exchange),
    ],
  });
  const resources: readonly Disposable[] = [
    registerProcessMetrics(registry),
    model.engine.observe(observer),
    ...(detectors === undefined ? [] : [model.engine.observe(detectors.observer)]),
    model.engine.observe(accountObserver),
    model.engine.observe(meter.observer),
    model.engine.observe(tenantObserver),
  ];
  let closing: Promise<void> | undefined;

  const close = async (): Promise<void> => {
    service.isDraining = true;
    await listener.close();
    const lastMs = Math.min(lastSpansMs, config.drainTimeoutMs);
    await Promise.all([tracing?.close(lastMs), otlpMetrics?.close(lastMs)]);
    await meter.close();
    await detectors?.close(Math.min(lastAlertsMs, config.drainTimeoutMs));
    for (const resource of resources) resource[Symbol.dispose]();
  };
  const server: OctavoServer = {
    config,
    listen: () => listener.listen(),
    reload({ apiKeys, tenants: settings }) {
      checkTenantSettings(settings, "tenants");
      const tls = readTls(config);
      tenants.replace(settings);
      keys.replace(apiKeys, settings.keys);
      if (tls !== undefined) listener.replaceTls(tls);
      log.info(
        { keys: apiKeys.length + settings.keys.length, tls: tls !== undefined },
        "keys, tenants and certificates reloaded",
      );
    },
    async drain(deadlineMs = config.drainTimeoutMs) {
      service.isDraining = true;
      const remainingMs = await listener.whenIdle(deadlineMs);
      await model.engine.drain(remainingMs);
      await server.close();
    },
    close() {
      closing ??= close();
      return closing;
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
  return server;
}

/** Checks that the model accepts faults, and warns that they are enabled. */
function allowFaults(model: LanguageModel, log: Logger): void {
  if (model.engine.faults === undefined) {
    const message = "enableFaultInjection: the model was loaded without enableFaultInjection";
    throw new OctavoError("invalid_option", message, { param: "enableFaultInjection" });
  }
  log.warn(
    "fault injection is enabled: anyone who may send requests can slow this server down; not for production",
  );
}

/** Throws for an adapter with a name of the model itself: it could never be requested. */
function checkAdapterNames(model: LanguageModel, config: ServerConfig): void {
  const names = servedNames(model, config);
  const taken = model.adapters?.list().find(({ name }) => names.includes(name));
  if (taken === undefined) return;
  const message = `lora_modules: ${JSON.stringify(taken.name)} is a name of the served model itself; give the adapter another one`;
  throw new OctavoError("invalid_option", message, { param: "lora_modules" });
}
