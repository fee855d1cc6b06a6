import type { EngineObserver, LanguageModel } from "@octavo/engine";
import { type ListenAddress, OctavoError } from "@octavo/protocol";
import type { SpanSink } from "@octavo/tracing";
import type { Logger } from "pino";
import type { ServerConfig } from "./config.js";
import { resolveServerConfig } from "./resolve-config.js";
import { ApiKeys } from "./http/api-keys.js";
import { CorsPolicy } from "./http/cors.js";
import { Dispatcher } from "./http/dispatcher.js";
import { createLogger } from "./logging.js";
import { HttpListener } from "./http/http-listener.js";
import { Router } from "./http/router.js";
import { registerEngineMetrics } from "./metrics/engine-metrics.js";
import { createDetectors, type RunningDetectors } from "./detectors/create-detectors.js";
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
import { ModelPool } from "./models/model-pool.js";
import { ServedModels } from "./models/served-models.js";
import { ResponseStore } from "./generation/response-store.js";
import { readTls } from "./http/tls.js";
import { checkTenantSettings } from "./tenants/tenant-settings.js";
import { TenantLabels } from "./tenants/tenant-labels.js";
import { TenantResolver } from "./tenants/tenant-resolver.js";
import { createOtlpMetrics } from "./tracing/otlp-metrics.js";
import { createServerTracing } from "./tracing/tracing-config.js";
import { registerTenantMetrics } from "./metrics/tenant-metrics.js";
import { registerSleepMetrics } from "./metrics/sleep-metrics.js";
import { registerTraceMetrics } from "./metrics/trace-metrics.js";

/** A model and the names that requests may use for it; the first is the one that answers carry. */
export interface NamedModel {
  readonly model: LanguageModel;
  readonly names: readonly [string, ...string[]];
}

export interface CreateServerOptions {
  readonly model: LanguageModel;
  /**
   * Models that this server has beside it, by name. Where all may sleep, as many are awake as `maxLoadedModels` and
   * `maxModelsMemoryBytes` allow, and requests wake the others.
   */
  readonly others?: readonly NamedModel[];
  readonly config?: Partial<ServerConfig>;
  /** Default: as `config.logLevel` and `config.logFormat` say. */
  readonly logger?: Logger;
  /** Span sinks in addition to `config.otlpEndpoint`; the server closes them. */
  readonly spanSinks?: readonly SpanSink[];
  /** Gets a cost record of each request; flushed when the server closes. */
  readonly meteringLog?: MeteringLog;
}

/** OpenAI-compatible HTTP over one language model, or several, which the caller disposes. */
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

/** What a model has of its own beside the others. */
interface ModelParts {
  readonly service: Service;
  readonly observers: readonly EngineObserver[];
  readonly detectors: RunningDetectors | undefined;
}

/** Wires models, their metrics and the endpoints into a server that is not listening yet. */
export function createServer({
  model,
  others = [],
  config: options,
  logger,
  spanSinks = [],
  meteringLog,
}: CreateServerOptions): OctavoServer {
  const config = resolveServerConfig(options);
  const log = logger ?? createLogger(config);
  const registry = Registry.create();
  const metrics = new HttpMetrics(registry);
  const tenants = new TenantResolver(config.tenants, config.prefixCacheSharing);
  const keys = new ApiKeys(config.apiKeys, config.tenants.keys);
  const labels = new TenantLabels(Object.keys(config.tenants.tenants));
  const responses = new ResponseStore();
  const partsOf = (named: LanguageModel, own: ServerConfig, families: Registry): ModelParts => {
    checkAdapterNames(named, own);
    if (config.enableFaultInjection) allowFaults(named, log);
    const { engine } = named;
    const engineRegistry = families.withLabels({ model_name: servedNames(named, own)[0], engine: "0" });
    const observer = registerEngineMetrics(engineRegistry, engine, config);
    registerSleepMetrics(engineRegistry, named);
    const detectors = createDetectors(named, own, engineRegistry, log);
    const tenantObserver = registerTenantMetrics(engineRegistry, engine, tenants, labels);
    return {
      service: new Service(named, own, families, metrics, keys, tenants, responses),
      observers: [observer, ...(detectors === undefined ? [] : [detectors.observer]), tenantObserver],
      detectors,
    };
  };
  const first = partsOf(model, config, registry);
  const rest = others.map((other) =>
    partsOf(other.model, { ...config, servedModelNames: other.names }, Registry.create()),
  );
  const parts = [first, ...rest];
  const models = modelsOf([first.service, ...rest.map(({ service }) => service)], config, log);
  const tracing = createServerTracing(models, config, log, spanSinks);
  const otlpMetrics = createOtlpMetrics(models, config, log);
  registerTraceMetrics(registry, tracing, otlpMetrics);
  const meter = new Meter(models, config, registry, meteringLog);
  const dispatcher = new Dispatcher({
    router: new Router(serverRoutes(models)),
    keys,
    cors: new CorsPolicy(config.corsOrigins),
    isDraining: () => first.service.isDraining,
    queueDepth: () => models.all.reduce((sum, service) => sum + service.model.engine.queueDepth, 0),
    accessLog: config.accessLog,
    rootPath: config.rootPath,
    explain: ({ model: name, slowest }) => slowAnswer(models.named(name).model.engine, slowest),
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
    ...parts.flatMap(({ service, observers }) =>
      [...observers, accountObserver, meter.observer].map((observer) =>
        service.model.engine.observe(observer),
      ),
    ),
  ];
  let closing: Promise<void> | undefined;
  const beginDrain = (): void => {
    for (const service of models.all) service.isDraining = true;
  };

  const close = async (): Promise<void> => {
    beginDrain();
    models.pool?.[Symbol.dispose]();
    await listener.close();
    const lastMs = Math.min(lastSpansMs, config.drainTimeoutMs);
    await Promise.all([tracing?.close(lastMs), otlpMetrics?.close(lastMs)]);
    await meter.close();
    await Promise.all(
      parts.map(async ({ detectors }) => detectors?.close(Math.min(lastAlertsMs, config.drainTimeoutMs))),
    );
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
      beginDrain();
      const remainingMs = await listener.whenIdle(deadlineMs);
      await Promise.all(models.all.map((service) => service.model.engine.drain(remainingMs)));
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

/** Throws `invalid_option` for a name that two models have. */
function modelsOf(
  services: readonly [Service, ...Service[]],
  config: ServerConfig,
  log: Logger,
): ServedModels {
  const names = services.flatMap(({ modelNames }) => modelNames);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    const message = `models: ${JSON.stringify(twice)} is the name of two models; serve one of them as NAME=MODEL`;
    throw new OctavoError("invalid_option", message, { param: "model" });
  }
  if (services.length === 1) return new ServedModels(services, undefined);
  if (services.some(({ model }) => model.sleepMode === undefined)) {
    if (config.maxLoadedModels === undefined && config.maxModelsMemoryBytes === 0)
      return new ServedModels(services, undefined);
    const message = "maxLoadedModels: models that cannot sleep stay in memory; load all with enableSleepMode";
    throw new OctavoError("invalid_option", message, { param: "max_loaded_models" });
  }
  const pool = new ModelPool({
    services,
    maxLoaded: config.maxLoadedModels ?? services.length,
    maxBytes: config.maxModelsMemoryBytes,
    timeoutMs: config.modelLoadTimeoutMs,
    log,
  });
  return new ServedModels(services, pool);
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
