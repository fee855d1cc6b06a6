import { connect, type Socket } from "node:net";
import { type ErrorCode, errorCodes, OctavoError } from "@octavo/protocol/errors";
import { showKey } from "./handshake.js";
import { encodeFrame, type Frame, FrameReader } from "./frames.js";
import type { StageReply, StageRequest } from "./messages.js";

/** A socket of this host, or a port of another. */
export type StageAddress = string | { readonly host: string; readonly port: number };

interface Waiting {
  readonly resolve: (frame: Frame) => void;
  readonly reject: (error: OctavoError) => void;
}

/** A stage in another process. Answers come in the order of requests. */
export class StageClient implements Disposable {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  readonly #name: string;
  #failure: OctavoError | undefined;
  /** Bytes both ways so far. */
  bytes = 0;

  private constructor(socket: Socket, name: string) {
    this.#socket = socket;
    this.#name = name;
    const reader = new FrameReader();
    socket.on("data", (chunk: Buffer) => {
      this.bytes += chunk.length;
      try {
        for (const frame of reader.push(chunk)) this.#waiting.shift()?.resolve(frame);
      } catch (error) {
        this.#fail(OctavoError.from(error).message);
      }
    });
    socket.on("error", (error) => this.#fail(error.message));
    socket.on("close", () => this.#fail("its process ended or its connection broke"));
  }

  /** `key`: see `showKey`. */
  static async connect(address: StageAddress, name: string, key?: Buffer): Promise<StageClient> {
    const socket = connect(typeof address === "string" ? { path: address } : { ...address, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", (cause) =>
        reject(new OctavoError("engine_failed", `No connection to ${name}: ${cause.message}.`, { cause })),
      );
    });
    if (key !== undefined)
      await showKey(socket, key).catch((cause: unknown) => {
        socket.destroy();
        const { message } = OctavoError.from(cause);
        throw new OctavoError("engine_failed", `No connection to ${name}: ${message}.`, { cause });
      });
    return new StageClient(socket, name);
  }

  async ask<Kind extends StageReply["kind"]>(
    request: StageRequest,
    expected: Kind,
    arrays: Frame["arrays"] = [],
  ): Promise<{ readonly reply: Extract<StageReply, { kind: Kind }>; readonly arrays: Frame["arrays"] }> {
    if (this.#failure !== undefined) throw this.#failure;
    const frame = await new Promise<Frame>((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      for (const part of encodeFrame({ head: request, arrays })) {
        this.bytes += part.length;
        this.#socket.write(part);
      }
    });
    const reply = frame.head as StageReply;
    if (reply.kind === "failed") {
      const code = Object.hasOwn(errorCodes, reply.code) ? (reply.code as ErrorCode) : "internal_error";
      throw new OctavoError(code, `${this.#name}: ${reply.message}`);
    }
    if (reply.kind !== expected) throw this.#fail(`it answered ${reply.kind} to ${request.kind}`);
    return { reply: reply as Extract<StageReply, { kind: Kind }>, arrays: frame.arrays };
  }

  #fail(reason: string): OctavoError {
    this.#failure ??= new OctavoError("engine_failed", `${this.#name} of the model is gone: ${reason}.`);
    for (const waiting of this.#waiting.splice(0)) waiting.reject(this.#failure);
    this.#socket.destroy();
    return this.#failure;
  }

  [Symbol.dispose](): void {
    this.#fail("it was closed");
  }
}
