import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { contentDigest, type QuarantinedContent } from "./quarantined-content.js";

const header = "octavo crash journal 1\n";
const digestPattern = /^[\w+/]{43}=$/;
/** Requests that are remembered of each kind. */
const mostRemembered = 1024;
const longestRememberedMs = 7 * 86_400_000;
/** A file that has grown to this is written anew with what still counts. */
const mostBytes = 1024 ** 2;
/** What no journal can have become. */
const mostReadBytes = 16 * mostBytes;

/**
 * Remembers on disk which requests a process computes, so that one which ends the process (a crash of native code, the
 * kernel's out-of-memory killer) is known when it comes again. Whoever was being computed when a process died is suspect.
 * Suspects are computed one at a time among everybody else, so that a second death leaves no more than one of them, which is
 * refused from then on; who is computed to its end is no longer suspect.
 *
 * The file is a log, one line a change, read whole at start. It is never synced: it need survive a process, not the machine.
 * One server at a time may have it.
 */
export class CrashJournal implements Disposable {
  readonly #path: string;
  readonly #onProblem: (message: string) => void;
  /** Digests, with when each was put there in ms since 1970. */
  readonly #refused: Map<string, number>;
  readonly #suspects: Map<string, number>;
  /** Those under way, in the order in which they began. */
  readonly #computing = new Map<QuarantinedContent, string>();
  #onTrial: QuarantinedContent | undefined;
  #file: number | undefined;
  #bytes = 0;
  #lines = "";

  /** Reads what was left and begins anew. Throws `invalid_option` for a file that cannot be written or is no journal. */
  constructor(path: string, onProblem: (message: string) => void) {
    this.#path = path;
    this.#onProblem = onProblem;
    try {
      mkdirSync(dirname(path), { recursive: true });
      const left = readJournal(path);
      this.#refused = left.refused;
      this.#suspects = left.suspects;
      this.#rewrite();
    } catch (thrown) {
      const why = `crash_journal: ${JSON.stringify(path.slice(0, 300))} cannot be used: ${messageOf(thrown)}`;
      throw new OctavoError("invalid_option", why, { param: "crash_journal", cause: thrown });
    }
  }

  /** Nobody is refused or suspect. */
  get isClear(): boolean {
    return this.#refused.size === 0 && this.#suspects.size === 0;
  }

  /** Throws `request_quarantined` for what two processes died of, `queue_full` for a suspect while another one is tried. */
  check(digest: string): void {
    if (this.#refused.has(digest)) {
      const message =
        "The server died twice while it computed this request. It is not tried again; change its prompt, and report it.";
      throw new OctavoError("request_quarantined", message);
    }
    if (!this.#suspects.has(digest) || this.#onTrial === undefined) return;
    const message =
      "The server died while it computed this request. Such requests are tried one at a time, and another one is being tried now.";
    throw new OctavoError("queue_full", message, { retryAfterSeconds: 1 });
  }

  /** A request was queued that `check` let pass. */
  queued(request: QuarantinedContent): void {
    if (this.#suspects.size > 0 && this.#suspects.has(contentDigest(request))) this.#onTrial = request;
  }

  /** The next step may compute it. */
  began(request: QuarantinedContent): void {
    if (this.#computing.has(request)) return;
    const digest = contentDigest(request);
    this.#computing.set(request, digest);
    this.#lines += `began ${digest}\n`;
  }

  /** No step will compute it any more. Whether it was computed to its end says whether it can still be what a process died of. */
  ended(request: QuarantinedContent, isComplete: boolean): void {
    if (this.#onTrial === request) this.#onTrial = undefined;
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

  /** Writes what has changed; before each step, so that whatever ends the process finds it written. */
  write(): void {
    const lines = this.#lines;
    this.#lines = "";
    if (lines === "" || this.#file === undefined) return;
    try {
      this.#bytes += writeSync(this.#file, lines);
      if (this.#bytes > mostBytes) this.#rewrite();
    } catch (thrown) {
      this.#close();
      this.#onProblem(`The crash journal ${this.#path} cannot be written any more: ${messageOf(thrown)}`);
    }
  }

  [Symbol.dispose](): void {
    this.write();
    this.#close();
  }

  #rewrite(): void {
    const lines = [
      ...[...this.#refused].map(([digest, ms]) => `refused ${digest} ${ms}\n`),
      ...[...this.#suspects].map(([digest, ms]) => `suspect ${digest} ${ms}\n`),
      ...[...this.#computing.values()].map((digest) => `began ${digest}\n`),
    ];
    const text = header + lines.join("");
    const whole = `${this.#path}.new`;
    writeFileSync(whole, text, { mode: 0o600 });
    renameSync(whole, this.#path);
    this.#close();
    this.#file = openSync(this.#path, "a");
    this.#bytes = text.length;
  }

  #close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

interface Left {
  readonly refused: Map<string, number>;
  readonly suspects: Map<string, number>;
}

/** What a process left behind: who it was computing is suspect now, and refused who was suspect before. */
function readJournal(path: string): Left {
  const left: Left = { refused: new Map(), suspects: new Map() };
  const text = textOf(path);
  if (text === "") return left;
  if (!text.startsWith(header))
    throw new OctavoError("invalid_option", "it is no crash journal; name another file, or remove it");
  const computing = new Map<string, number>();
  for (const line of text.slice(header.length).split("\n")) {
    const [kind, digest = "", ms = "0"] = line.split(" ");
    // the last line of a process that died may be half a line
    if (!digestPattern.test(digest)) continue;
    if (kind === "refused") remember(left.refused, digest, Number(ms));
    else if (kind === "suspect") remember(left.suspects, digest, Number(ms));
    else if (kind === "acquitted") left.suspects.delete(digest);
    else if (kind === "began") computing.set(digest, (computing.get(digest) ?? 0) + 1);
    else if (kind === "ended") computing.set(digest, (computing.get(digest) ?? 0) - 1);
  }
  const nowMs = Date.now();
  for (const [digest, count] of computing) {
    if (count <= 0) continue;
    if (left.suspects.delete(digest)) remember(left.refused, digest, nowMs);
    else remember(left.suspects, digest, nowMs);
  }
  for (const entries of [left.refused, left.suspects])
    for (const [digest, ms] of entries) if (!(nowMs - ms <= longestRememberedMs)) entries.delete(digest);
  return left;
}

function textOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return "";
  if (!found.isFile() || found.size > mostReadBytes)
    throw new OctavoError("invalid_option", "it is no crash journal; name another file");
  return readFileSync(path, "latin1");
}

/** The oldest gives way where there are too many. */
function remember(entries: Map<string, number>, digest: string, ms: number): void {
  const [oldest] = entries.keys();
  if (entries.size >= mostRemembered && oldest !== undefined && !entries.has(digest)) entries.delete(oldest);
  entries.set(digest, ms);
}
