import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { storeUnavailable, type StoredDocument } from "./shared-store.js";

interface WindowState {
  readonly taken: number;
  readonly endsAtMs: number;
}

/** Lines after which the file is rewritten with what still counts. */
const linesBeforeRewrite = 50_000;
/** Windows are kept a while after their end, for what is given back late. */
const keptAfterEndMs = 3_600_000;

/**
 * Spending windows and documents, and the file that keeps them: a line of JSON per change, written before the change counts,
 * so that a process that is killed leaves at least what it granted. A last line that was cut off is dropped; any other damage
 * is an error, since what it said may have been spent.
 */
export class WindowFile {
  readonly #path: string | undefined;
  readonly #windows = new Map<string, WindowState>();
  readonly #documents = new Map<string, StoredDocument>();
  #descriptor: number | undefined;
  #lines = 0;

  constructor(path: string | undefined, nowMs: number) {
    this.#path = path;
    if (path === undefined) return;
    try {
      this.#read(path);
      this.#rewrite(nowMs);
    } catch (cause) {
      throw storeUnavailable(`The store's file ${path} cannot be used: ${(cause as Error).message}`, cause);
    }
  }

  taken(key: string): number {
    return this.#windows.get(key)?.taken ?? 0;
  }

  setTaken(key: string, taken: number, endsAtMs: number, nowMs: number): void {
    this.#append({ window: key, taken, endsAtMs });
    this.#windows.set(key, { taken, endsAtMs });
    if (this.#lines >= linesBeforeRewrite) this.#rewrite(nowMs);
    else if (this.#windows.size % 1000 === 0) this.#dropEnded(nowMs);
  }

  document(name: string): StoredDocument | undefined {
    return this.#documents.get(name);
  }

  setDocument(name: string, document: StoredDocument): void {
    this.#append({ document: name, ...document });
    this.#documents.set(name, document);
  }

  close(): void {
    if (this.#descriptor === undefined) return;
    fsyncSync(this.#descriptor);
    closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #append(line: object): void {
    if (this.#path === undefined) return;
    if (this.#descriptor === undefined) throw storeUnavailable("The store is closed.");
    try {
      writeSync(this.#descriptor, `${JSON.stringify(line)}\n`);
    } catch (cause) {
      throw storeUnavailable(`The store's file ${this.#path} cannot be written.`, cause);
    }
    this.#lines++;
  }

  #read(path: string): void {
    const lines = readIfThere(path).split("\n");
    // complete lines end in a newline: what follows the last one was cut off
    lines.pop();
    for (const [index, line] of lines.entries()) {
      const change = parseChange(line);
      if (change === undefined) throw storeUnavailable(`line ${index + 1} is damaged`);
      if ("window" in change) this.#windows.set(change.window, change);
      else this.#documents.set(change.document, { value: change.value, version: change.version });
    }
  }

  #dropEnded(nowMs: number): void {
    for (const [key, { endsAtMs }] of this.#windows)
      if (endsAtMs + keptAfterEndMs < nowMs) this.#windows.delete(key);
  }

  /** By a second file that takes the first one's place at once. */
  #rewrite(nowMs: number): void {
    this.#dropEnded(nowMs);
    this.#lines = 0;
    if (this.#path === undefined) return;
    const next = `${this.#path}.next`;
    const descriptor = openSync(next, "w", 0o600);
    const changes = [
      ...[...this.#windows].map(([window, state]) => ({
        window,
        taken: state.taken,
        endsAtMs: state.endsAtMs,
      })),
      ...[...this.#documents].map(([document, state]) => ({ document, ...state })),
    ];
    writeSync(descriptor, changes.map((change) => `${JSON.stringify(change)}\n`).join(""));
    fsyncSync(descriptor);
    renameSync(next, this.#path);
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = descriptor;
  }
}

type Change = ({ readonly window: string } & WindowState) | ({ readonly document: string } & StoredDocument);

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}

function parseChange(line: string): Change | undefined {
  try {
    const change = JSON.parse(line) as Record<string, unknown>;
    const isWindow =
      typeof change.window === "string" &&
      Number.isSafeInteger(change.taken) &&
      typeof change.endsAtMs === "number";
    const isDocument =
      typeof change.document === "string" &&
      typeof change.value === "string" &&
      Number.isSafeInteger(change.version);
    return isWindow || isDocument ? (change as unknown as Change) : undefined;
  } catch {
    return undefined;
  }
}
