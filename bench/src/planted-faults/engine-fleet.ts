import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LLM, type LoadOptions } from "@octavo/engine";
import { openAiTarget, type Target } from "@octavo/evals";
import { quantize, type QuantizeOptions } from "@octavo/studio/quantize";
import { createServer } from "@octavo/server";
import { embeddedModel } from "../support/served-model.js";

/** Servers of this process, each a replica of its own, and artifacts made for them; all gone when it is disposed. */
export class EngineFleet implements AsyncDisposable {
  readonly #closers: (() => PromiseLike<void>)[] = [];
  readonly #artifacts = new Map<string, Promise<string>>();

  /** Serves a model, the embedded one by default, and returns how it is asked. */
  async serve(name: string, options: LoadOptions = {}, model: string = embeddedModel): Promise<Target> {
    const kvCacheMemoryBytes = options.kvCacheMemoryBytes ?? 64 * 2 ** 20;
    const llm = await LLM.load(model, { ...options, kvCacheMemoryBytes });
    this.#closers.push(() => llm[Symbol.asyncDispose]());
    const server = createServer({
      model: llm,
      config: {
        port: 0,
        logLevel: "silent",
        accessLog: false,
        enableFaultInjection: options.enableFaultInjection ?? false,
      },
    });
    this.#closers.push(() => server[Symbol.asyncDispose]());
    const { url } = await server.listen();
    return openAiTarget({ name, baseUrl: `${url}/v1` });
  }

  /** The embedded model quantised; made once for each method. */
  quantised(options: Omit<QuantizeOptions, "out">): Promise<string> {
    const key = JSON.stringify(options);
    const known = this.#artifacts.get(key) ?? this.#quantise(options);
    this.#artifacts.set(key, known);
    return known;
  }

  async #quantise(options: Omit<QuantizeOptions, "out">): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "octavo-planted-"));
    this.#closers.push(() => rm(folder, { recursive: true, force: true }));
    const out = join(folder, "model");
    await quantize(embeddedModel, { ...options, out });
    return out;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closers.splice(0).toReversed()) await close();
  }
}
