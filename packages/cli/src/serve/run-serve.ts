import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describeModel, LLM, type LoadOptions } from "@octavo/engine";
import { availableMemoryBytes } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { SpanSink } from "@octavo/tracing";
import type { MeteringLog, OctavoServer } from "@octavo/server";
import { readTenantsFile, resolveServerConfig, type ServerConfig } from "@octavo/server/settings";
import { interruptible } from "../interruptible.js";
import { checkAddress } from "../options/check-address.js";
import { checkFolder } from "../options/check-folder.js";
import { openFilesWarning } from "../options/check-open-files.js";
import { checkAdapters } from "../options/check-adapters.js";
import { loadOptionsOf, serverConfigOf, type ServeOptions } from "../options/serve-options.js";
import { endProcessAfter } from "../shutdown-watchdog.js";
import { type ModelArgument, modelArguments } from "./model-arguments.js";
import { checkOutputs } from "../output/files.js";
import { createLoadingLine } from "../output/loading-line.js";
import { serveBanner } from "../output/serve-banner.js";

/** Loads the models and answers until told to stop. `readOptions` reads the options again, as they are then. */
export async function runServe(
  options: ServeOptions,
  given: readonly string[],
  readOptions: () => Promise<ServeOptions>,
): Promise<void> {
  const models = modelArguments([...given, ...options.models], options.servedModelNames);
  const [{ names }] = models;
  const config = configOf(options, names);
  const load = loadOptionsOf(options);
  checkFolders(options);
  checkAdapters(load.loraModules ?? []);
  await checkAddress(config);
  if (options.hfToken !== undefined) process.env["HF_TOKEN"] = options.hfToken;
  const tooFewFiles = openFilesWarning(options.maxNumSeqs + options.maxQueuedRequests);
  if (tooFewFiles !== undefined) tell(tooFewFiles);
  const loaded: LLM[] = [];
  try {
    await loadModels(models, options, load, loaded);
    await serve(models, loaded, options, config, readOptions);
  } finally {
    // The first one's backend is that of all.
    for (const model of loaded.toReversed()) await model[Symbol.asyncDispose]();
  }
}

async function serve(
  models: readonly ModelArgument[],
  [model, ...others]: readonly LLM[],
  options: ServeOptions,
  config: ServerConfig,
  readOptions: () => Promise<ServeOptions>,
): Promise<void> {
  if (model === undefined) throw new OctavoError("internal_error", "no model was loaded");
  const { createServer } = await readServer();
  const store = await openTraceStore(options);
  const meteringLog = await openMeteringLog(options.meteringLog);
  const server = createServer({
    model,
    others: others.map((other, index) => ({ model: other, names: namesOf(models[index + 1], other) })),
    config,
    spanSinks: store === undefined ? [] : [store],
    ...(meteringLog === undefined ? {} : { meteringLog }),
  });
  const address = await server.listen();
  // Signals are handled before anyone can know that we serve.
  const stopped = untilStopped(server);
  process.on("SIGHUP", () => void reload(server, readOptions));
  // Standard output is the log's.
  process.stderr.write(
    serveBanner({
      url: `${address.url}${config.rootPath}`,
      uds: config.uds,
      model,
      others: others.map((other, index) => namesOf(models[index + 1], other)[0]),
      backend: model.backend.info,
      names: config.servedModelNames,
      faults: faultsOf(options),
      needsKey: config.apiKeys.length + config.tenants.keys.length > 0,
    }),
  );
  await stopped;
}

/** Adds to `loaded`, one after the other, on one backend; those beyond what may be in memory sleep at once. */
async function loadModels(
  models: readonly ModelArgument[],
  options: ServeOptions,
  given: LoadOptions,
  loaded: LLM[],
): Promise<void> {
  const own = models.length > 1 && given.device === "cpu" ? { enableSleepMode: true } : {};
  for (const { source } of models) {
    const load = { ...given, ...own, ...(options.auto && (await sizesFor(source, given))) };
    const backend = loaded[0]?.backend;
    const delayMs = loaded.length === 0 ? options.faultStartDelay : 0;
    const model = await loadModel(source, backend === undefined ? load : { ...load, backend }, delayMs);
    loaded.push(model);
    const awake = loaded.filter(({ sleepMode }) => sleepMode?.level === undefined);
    const bytes = awake.reduce((sum, { sleepMode }) => sum + (sleepMode?.byteLength ?? 0), 0);
    const { maxLoadedModels = models.length, maxModelsMemoryBytes: maxBytes } = options;
    if (awake.length > 1 && (awake.length > maxLoadedModels || (maxBytes > 0 && bytes > maxBytes)))
      await model.sleepMode?.sleep();
  }
}

function namesOf(argument: ModelArgument | undefined, { name }: LLM): readonly [string, ...string[]] {
  const [first = name, ...rest] = argument?.names ?? [];
  return [first, ...rest];
}

/** What `--auto` chooses, which is said. */
async function sizesFor(source: string, given: LoadOptions): Promise<LoadOptions> {
  const { autoOptions } = await import("./auto-options.js");
  const { revision, downloadDir } = given;
  const named = revision === undefined ? source : source.replace(/^[^/@:\s]+\/[^/@:\s]+/, `$&@${revision}`);
  const description = await describeModel(existsSync(source) ? source : named, {
    env: { ...process.env, ...(downloadDir !== undefined && { HF_HUB_CACHE: downloadDir }) },
  });
  const { options, line } = autoOptions(source, description, availableMemoryBytes(), given);
  tell(line);
  return options;
}

function configOf(options: ServeOptions, defaultNames: readonly string[]): ServerConfig {
  const tenants = options.tenants === undefined ? undefined : readTenantsFile(options.tenants);
  return resolveServerConfig(serverConfigOf(options, defaultNames, tenants));
}

/** Before weights are loaded. */
function checkFolders(options: ServeOptions): void {
  const { traceStore = "auto", weightCache, downloadDir, meteringLog, crashJournal } = options;
  if (traceStore !== "auto") checkFolder("trace-store", traceStore);
  if (weightCache !== "auto" && weightCache !== "off") checkFolder("weight-cache", weightCache);
  if (downloadDir !== undefined) checkFolder("download-dir", downloadDir);
  checkOutputs({ "metering-log": meteringLog, "crash-journal": crashJournal });
}

async function loadModel(source: string, options: LoadOptions, startDelayMs: number): Promise<LLM> {
  const loading = createLoadingLine(process.stderr);
  return interruptible(async (signal) => {
    await startDelay(startDelayMs, signal);
    return LLM.load(source, {
      ...options,
      onProgress: (state) => {
        if (state.phase === "loading weights") void readServer();
        loading.update(state);
      },
      onWarning: loading.warn,
      signal,
    });
  }).finally(() => loading.end());
}

let serverModules: Promise<typeof import("@octavo/server")> | undefined;

/** Some two hundred modules that nothing needs before the model is there: imported while the kernels' threads pack its weights. */
function readServer(): Promise<typeof import("@octavo/server")> {
  serverModules ??= import("@octavo/server");
  // A failure reaches the code that awaits it.
  serverModules.catch(() => undefined);
  return serverModules;
}

async function startDelay(delayMs: number, signal: AbortSignal): Promise<void> {
  if (delayMs === 0) return;
  tell(`--fault-start-delay: waiting ${delayMs / 1000} s before loading`);
  await sleep(delayMs, undefined, { signal }).catch((cause: unknown) => {
    throw new OctavoError("request_cancelled", "waiting to load the model was ended", { cause });
  });
}

/** The banner's warnings. */
function faultsOf({ enableFaultInjection, corruptWeights }: ServeOptions): readonly string[] {
  if (!enableFaultInjection) return [];
  const enabled = "fault injection is enabled: requests can slow this server down; not for production";
  if (corruptWeights === undefined) return [enabled];
  const { seed, scale, pattern = "*" } = corruptWeights;
  return [enabled, `the weights ${pattern} are corrupted: noise of ${scale}, seed ${seed}`];
}

async function openTraceStore({
  traceStore: flag,
  traceContent,
  traceContentRetention,
}: ServeOptions): Promise<SpanSink | undefined> {
  if (flag === undefined) return undefined;
  const { ContentStore, defaultStoreFolder, SpanStore } = await import("@octavo/tracing/store");
  const folder = flag === "auto" ? defaultStoreFolder() : flag;
  if (traceContent === "none") return SpanStore.open({ folder, onProblem: tell });
  return ContentStore.open({ folder, onProblem: tell, contentMaxAgeMs: traceContentRetention });
}

async function openMeteringLog(path: string | undefined): Promise<MeteringLog | undefined> {
  if (path === undefined) return undefined;
  const { MeteringLog } = await readServer();
  return MeteringLog.open({ path, onProblem: tell });
}

function tell(message: string): void {
  process.stderr.write(`octavo: ${message}\n`);
}

/** Keys and tenants as the same flags, environment and files give them now; what is wrong in them leaves the server as it is. */
async function reload(server: OctavoServer, readOptions: () => Promise<ServeOptions>): Promise<void> {
  try {
    server.reload(configOf(await readOptions(), []));
    tell("SIGHUP: keys, tenants and certificates are those of the files now");
  } catch (thrown) {
    const error = OctavoError.from(thrown);
    tell(`SIGHUP: nothing was changed: ${error.message} [${error.code}]`);
  }
}

/** Beyond the drain timeout: for closing connections, sending the last spans and freeing the model. */
const closingMs = 10_000;

/**
 * Ends on SIGTERM or SIGINT: running requests may finish; a second signal drops them. The process is gone soon after the drain
 * timeout, whatever still runs then.
 */
async function untilStopped(server: OctavoServer): Promise<void> {
  const signals = ["SIGINT", "SIGTERM"] as const;
  await new Promise<void>((resolve, reject) => {
    let draining = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (draining) {
        server.close().then(resolve, reject);
        return;
      }
      draining = true;
      endProcessAfter(server.config.drainTimeoutMs + closingMs);
      process.stderr.write(`${signal}: finishing running requests; press again to drop them\n`);
      server.drain().then(resolve, reject);
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}
