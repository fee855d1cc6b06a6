import { connect, type Socket } from "node:net";

/** One connection spoken to in bytes, for what no HTTP client would send. */
export class RawSocket implements Disposable {
  readonly #socket: Socket;
  #received = "";
  readonly #closed: Promise<void>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      this.#received += text;
    });
    socket.on("error", () => {});
    this.#closed = new Promise((resolve) => socket.on("close", () => resolve()));
  }

  static async open(port: number): Promise<RawSocket> {
    const socket = connect({ host: "127.0.0.1", port });
    await new Promise((resolve) => socket.once("connect", resolve));
    return new RawSocket(socket);
  }

  get received(): string {
    return this.#received;
  }

  send(data: string | Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(data);
  }

  /** Stops reading, so that the server's writes fill up. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Everything until the server closed the connection. */
  async untilClosed(): Promise<string> {
    await this.#closed;
    return this.#received;
  }

  async until(isEnough: (received: string) => boolean): Promise<string> {
    while (!isEnough(this.#received)) {
      if (this.#socket.destroyed) throw new TypeError(`closed early after ${JSON.stringify(this.#received)}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return this.#received;
  }

  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** The JSON body of a response that carries one. */
export function bodyOf(response: string): {
  readonly error: { readonly message: string; readonly type: string; readonly code: number };
} {
  const start = response.indexOf("\r\n\r\n");
  return JSON.parse(response.slice(start + 4)) as ReturnType<typeof bodyOf>;
}
