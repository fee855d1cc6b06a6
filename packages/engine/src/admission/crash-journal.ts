import { closeSync, openSync, readFileSync, renameSync, statSync, writeFileSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { makeFolder } from "@octavo/protocol/make-folder";
import { lockFile, recordFaults } from "@octavo/kernels";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { currentMark, type ProcessMark, wasKilledForMemory } from "./process-end.js";
import { contentDigest, type QuarantinedContent } from "./quarantined-content.js";

const header = "octavo crash journal 1\n";
const digestPattern = /^[\w+/]{43}=$/;
/** Entries kept of each kind. */
const maxRemembered = 1024;
const maxRememberedMs = 7 * 86_400_000;
/** A file that has grown to this is rewritten with its live entries. */
const maxBytes = 1024 ** 2;
/** No journal grows to this. */
const maxReadBytes = 16 * maxBytes;

/**
 * Records on disk which requests a process computes, so that one that crashes it (a fault in native code, an uncaught error, the
 * kernel's out-of-memory killer) is recognised when it is sent again. Only an end that left a sign of a fault is a crash: the
 * process's own last line, or a process killed for memory since. Every request in flight at a crash is a suspect. Suspects are computed one at a time among all other requests, so that a second crash has a single suspect, which is rejected from then on;
 * a suspect that completes is cleared.
 *
 * The file is a log, one line per change, read whole at start. It is never synced: it must survive the process, not the
 * machine. Its lock keeps other servers off.
 */
export class CrashJournal implements Disposable {
  readonly #path: string;
  readonly #onProblem: (message: string) => void;
  /** When each digest was added, in ms since 1970. */
  readonly #refused: Map<string, number>;
  readonly #suspects: Map<string, number>;
  /** Digests of the requests in flight, in the order in which they began. */
  readonly #computing = new Map<QuarantinedContent, string>();
  #suspectInFlight: QuarantinedContent | undefined;
  readonly #lock: number;
  #file: number | undefined;
  #isDisposed = false;
  #bytes = 0;
  #lines = "";

  /** Reads what an earlier process left. Throws `invalid_option` for a file that cannot be written or is no journal. */
  constructor(path: string, onProblem: (message: string) => void) {
    this.#path = path;
    this.#onProblem = onProblem;
    try {
      makeFolder(dirname(path));
      this.#lock = lockOf(path);
      try {
        const left = readJournal(path);
        this.#refused = left.refused;
        this.#suspects = left.suspects;
        this.#rewrite();
      } catch (thrown) {
        this.#close();
        closeSync(this.#lock);
        throw thrown;
      }
      process.on("uncaughtExceptionMonitor", this.#onUncaught);
    } catch (thrown) {
      const why = `crash_journal: ${JSON.stringify(path.slice(0, 300))} cannot be used: ${systemProblem(thrown)}`;
      throw new OctavoError("invalid_option", why, { param: "crash_journal", cause: thrown });
    }
  }

  /** No request is rejected or suspect. */
  get isClear(): boolean {
    return this.#refused.size === 0 && this.#suspects.size === 0;
  }

  /** Throws `request_quarantined` for a request in flight at two crashes, `queue_full` for a suspect while another one runs. */
  check(digest: string): void {
    if (this.#refused.has(digest)) {
      const message =
        "The server crashed twice while it computed this request. It is not tried again; change its prompt, and report it.";
      throw new OctavoError("request_quarantined", message);
    }
    if (!this.#suspects.has(digest) || this.#suspectInFlight === undefined) return;
    const message =
      "The server crashed while it computed this request. Such requests are tried one at a time, and another one is being tried now.";
    throw new OctavoError("queue_full", message, { retryAfterSeconds: 1 });
  }

  /** Records that a request which passed `check` was queued. */
  queued(request: QuarantinedContent): void {
    if (this.#suspects.size > 0 && this.#suspects.has(contentDigest(request)))
      this.#suspectInFlight = request;
  }

  /** Records that the next step may compute a request. */
  began(request: QuarantinedContent): void {
    if (this.#computing.has(request)) return;
    const digest = contentDigest(request);
    this.#computing.set(request, digest);
    this.#lines += `began ${digest}\n`;
  }

  /** Records that no step will compute a request any more; one that completed is no longer a suspect. */
  ended(request: QuarantinedContent, isComplete: boolean): void {
    if (this.#suspectInFlight === request) this.#suspectInFlight = undefined;
    const digest = this.#computing.get(request);
    if (digest === undefined) return;
    this.#computing.delete(request);
    this.#lines += `ended ${digest}\n`;
    if (isComplete && this.#suspects.delete(digest)) this.#lines += `acquitted ${digest}\n`;
  }

  refuse(content: QuarantinedContent): void {
    const digest = contentDigest(content);
    remember(this.#refused, digest, Date.now());
    this.#lines += `refused ${digest} ${Date.now()}\n`;
  }

  /** Writes pending lines; called before each step, so that they are on disk if the step crashes the process. */
  write(): void {
    const lines = this.#lines;
    this.#lines = "";
    if (lines === "" || this.#file === undefined) return;
    try {
      this.#bytes += writeSync(this.#file, lines);
      if (this.#bytes > maxBytes) this.#rewrite();
    } catch (thrown) {
      this.#close();
      this.#onProblem(`The crash journal ${this.#path} can no longer be written: ${systemProblem(thrown)}`);
    }
  }

  [Symbol.dispose](): void {
    this.write();
    this.#close();
    process.off("uncaughtExceptionMonitor", this.#onUncaught);
    if (!this.#isDisposed) closeSync(this.#lock);
    this.#isDisposed = true;
  }

  readonly #onUncaught = (): void => {
    this.#lines += "fault uncaught\n";
    this.write();
  };

  #rewrite(): void {
    const lines = [
      `process ${JSON.stringify(currentMark())}\n`,
      ...[...this.#refused].map(([digest, ms]) => `refused ${digest} ${ms}\n`),
      ...[...this.#suspects].map(([digest, ms]) => `suspect ${digest} ${ms}\n`),
      ...[...this.#computing.values()].map((digest) => `began ${digest}\n`),
    ];
    const text = header + lines.join("");
    const rewritten = `${this.#path}.new`;
    writeFileSync(rewritten, text, { mode: 0o600 });
    renameSync(rewritten, this.#path);
    this.#close();
    this.#file = openSync(this.#path, "a");
    if (!recordFaults(this.#file, true))
      throw new OctavoError("invalid_option", "too many journals are open in this process");
    this.#bytes = text.length;
  }

  #close(): void {
    if (this.#file === undefined) return;
    recordFaults(this.#file, false);
    closeSync(this.#file);
    this.#file = undefined;
  }
}

interface Left {
  readonly refused: Map<string, number>;
  readonly suspects: Map<string, number>;
}

/** The descriptor of the lock, held until it is closed. The journal itself is renamed into place, and a lock stays with the file. */
function lockOf(path: string): number {
  if (process.platform === "win32")
    throw new OctavoError("invalid_option", "crash journals are not available on Windows");
  const descriptor = openSync(`${path}.lock`, "a", 0o600);
  if (lockFile(descriptor)) return descriptor;
  closeSync(descriptor);
  throw new OctavoError("invalid_option", "another server uses it; each needs a journal of its own");
}

/** What an earlier process left: requests in flight at its crash are suspects now, and rejected if they were suspects before. */
function readJournal(path: string): Left {
  const left: Left = { refused: new Map(), suspects: new Map() };
  const text = textOf(path);
  if (text === "") return left;
  if (!text.startsWith(header))
    throw new OctavoError("invalid_option", "it is not a crash journal; name another file, or remove it");
  const computing = new Map<string, number>();
  let numFaults = 0;
  let mark: ProcessMark = { bootId: null, memoryKills: null };
  for (const line of text.slice(header.length).split("\n")) {
    if (line.startsWith("fault ")) numFaults += 1;
    else if (line.startsWith("survived ")) numFaults -= 1;
    else if (line.startsWith("process ")) mark = parseMark(line.slice("process ".length)) ?? mark;
    const [kind, digest = "", ms = "0"] = line.split(" ");
    // The last line of a crashed process may be incomplete.
    if (!digestPattern.test(digest)) continue;
    if (kind === "refused") remember(left.refused, digest, Number(ms));
    else if (kind === "suspect") remember(left.suspects, digest, Number(ms));
    else if (kind === "acquitted") left.suspects.delete(digest);
    else if (kind === "began") computing.set(digest, (computing.get(digest) ?? 0) + 1);
    else if (kind === "ended") computing.set(digest, (computing.get(digest) ?? 0) - 1);
  }
  const nowMs = Date.now();
  const isCrash = numFaults > 0 || wasKilledForMemory(mark);
  for (const [digest, count] of computing) {
    if (count <= 0 || !isCrash) continue;
    if (left.suspects.delete(digest)) remember(left.refused, digest, nowMs);
    else remember(left.suspects, digest, nowMs);
  }
  for (const entries of [left.refused, left.suspects])
    for (const [digest, ms] of entries) if (!(nowMs - ms <= maxRememberedMs)) entries.delete(digest);
  return left;
}

function parseMark(text: string): ProcessMark | undefined {
  try {
    const { bootId, memoryKills } = JSON.parse(text) as Partial<ProcessMark>;
    return {
      bootId: typeof bootId === "string" ? bootId : null,
      memoryKills: typeof memoryKills === "number" ? memoryKills : null,
    };
  } catch {
    return undefined;
  }
}

function textOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return "";
  if (!found.isFile() || found.size > maxReadBytes)
    throw new OctavoError("invalid_option", "it is not a crash journal; name another file");
  return readFileSync(path, "latin1");
}

/** Drops the oldest entry when full. */
function remember(entries: Map<string, number>, digest: string, ms: number): void {
  const [oldest] = entries.keys();
  if (entries.size >= maxRemembered && oldest !== undefined && !entries.has(digest)) entries.delete(oldest);
  entries.set(digest, ms);
}
