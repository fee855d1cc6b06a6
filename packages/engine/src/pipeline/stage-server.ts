import { createServer, type Server, type Socket } from "node:net";
import type { Backend, KvCache } from "@octavo/kernels";
import { openCpuBackend } from "../model/open-cpu-backend.js";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { OctavoError } from "@octavo/protocol/errors";
import { type LoadedModel, loadModel } from "../model/load-model.js";
import { artifactDigest } from "@octavo/artifacts/checkpoint/artifact-digest";
import { admitByKey } from "./handshake.js";
import { encodeFrame, type Frame, FrameReader } from "./frames.js";
import { type StageLoad, type StageReply, type StageRequest, unpackPlan } from "./messages.js";
import { ownCache } from "./own-cache.js";

/** What one connection has loaded. */
class Stage {
  #backend: Backend | undefined;
  #loaded: LoadedModel | undefined;
  #cache: KvCache | undefined;

  async answer({ head, arrays }: Frame): Promise<Frame> {
    const request = head as StageRequest;
    switch (request.kind) {
      case "load":
        return frameOf({ kind: "loaded", weightBytes: await this.#load(request.load) });
      case "cache": {
        const { backend, loaded } = this.#ready();
        this.#cache?.[Symbol.dispose]();
        this.#cache = backend.createKvCache(ownCache(request.spec, loaded));
        await backend.settled?.();
        return frameOf({ kind: "made" });
      }
      case "step": {
        const { backend, loaded } = this.#ready();
        if (this.#cache === undefined) throw notReady();
        const plan = unpackPlan(request.plan, arrays);
        const { computeMs, sent = new Float32Array() } = await backend.execute(
          loaded.program,
          this.#cache,
          plan,
        );
        return { head: { kind: "done", computeMs } satisfies StageReply, arrays: [sent] };
      }
      default:
        throw new OctavoError("invalid_request", "A pipeline stage knows load, cache and step.");
    }
  }

  async #load(load: StageLoad): Promise<number> {
    this.dispose();
    const { numRanks, numThreads, kernels, quantization, name } = load;
    const backend = await openCpuBackend({ kernels, numThreads }, numRanks);
    this.#backend = backend;
    const { instructionSet, features } = backend.info;
    const own = [instructionSet, ...features].join(" ");
    if (own !== load.kernelFeatures) {
      throw new OctavoError(
        "invalid_option",
        `This stage computes with ${own} kernels, the last one with ${load.kernelFeatures}: give both the same with --kernels and OCTAVO_ISA.`,
        { param: "kernels" },
      );
    }
    const checkpoint = await openCheckpoint(load.path, { name, quantization });
    if (load.artifactDigest !== undefined && (await artifactDigest(checkpoint)) !== load.artifactDigest)
      throw new OctavoError("invalid_option", `The model at ${load.path} is another one than the server's.`, {
        param: "pipeline_stage_addresses",
      });
    const { stage, maxTokens, maxModelLen, dtype, inPlace } = load;
    this.#loaded = await loadModel(backend, checkpoint, { stage, maxTokens, maxModelLen, dtype, inPlace });
    return this.#loaded.weightBytes;
  }

  #ready(): { readonly backend: Backend; readonly loaded: LoadedModel } {
    if (this.#backend === undefined || this.#loaded === undefined) throw notReady();
    return { backend: this.#backend, loaded: this.#loaded };
  }

  dispose(): void {
    for (const part of [this.#cache, this.#loaded, this.#backend]) part?.[Symbol.dispose]();
    [this.#cache, this.#loaded, this.#backend] = [undefined, undefined, undefined];
  }
}

export interface StageServerOptions {
  /** A connection has ended. */
  readonly onClose?: () => void;
  /** Only who has it is served. */
  readonly key?: Buffer | undefined;
  /** Called with the address of who has not. */
  readonly onRefused?: ((address: string) => void) | undefined;
}

/** Serves stages, one to a connection; with the connection goes what it loaded. */
export function createStageServer({ onClose, key, onRefused }: StageServerOptions = {}): Server {
  return createServer({ noDelay: true }, (socket) => {
    if (key === undefined) {
      serve(socket, onClose);
      return;
    }
    socket.on("error", () => socket.destroy());
    admitByKey(socket, key).then(
      () => serve(socket, onClose),
      () => {
        onRefused?.(socket.remoteAddress ?? "");
        socket.destroy();
      },
    );
  });
}

function serve(socket: Socket, onClose: () => void = () => undefined): void {
  const stage = new Stage();
  const reader = new FrameReader();
  let turn = Promise.resolve();
  socket.on("data", (chunk: Buffer) => {
    try {
      for (const frame of reader.push(chunk)) turn = turn.then(() => reply(socket, stage, frame));
    } catch {
      socket.destroy();
    }
  });
  socket.on("error", () => socket.destroy());
  socket.on("close", () => {
    void turn.finally(() => {
      stage.dispose();
      onClose();
    });
  });
}

async function reply(socket: Socket, stage: Stage, frame: Frame): Promise<void> {
  const answer = await stage.answer(frame).catch((thrown: unknown) => {
    const { code, message } = OctavoError.from(thrown);
    return frameOf({ kind: "failed", code, message });
  });
  for (const part of encodeFrame(answer)) socket.write(part);
}

function frameOf(head: StageReply): Frame {
  return { head, arrays: [] };
}

function notReady(): OctavoError {
  return new OctavoError("invalid_request", "This pipeline stage has loaded nothing yet.");
}
