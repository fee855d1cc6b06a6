import { OctavoError } from "@octavo/protocol/errors";
import type { CrashJournal } from "./crash-journal.js";
import { contentDigest, type QuarantinedContent } from "./quarantined-content.js";

const maxRemembered = 1024;

/** Rejects requests that failed a step twice, however often they are sent again; with a journal, also those that crashed a process twice. */
export class Quarantine {
  readonly #digests = new Set<string>();
  readonly #journal: CrashJournal | undefined;

  constructor(journal?: CrashJournal) {
    this.#journal = journal;
  }

  get size(): number {
    return this.#digests.size;
  }

  add(content: QuarantinedContent): void {
    const [oldest] = this.#digests;
    if (this.#digests.size >= maxRemembered && oldest !== undefined) this.#digests.delete(oldest);
    this.#digests.add(contentDigest(content));
    this.#journal?.refuse(content);
  }

  /** Throws `request_quarantined` for such a request, and what the journal's `check` throws. */
  check(content: QuarantinedContent): void {
    if (this.#digests.size === 0 && this.#journal?.isClear !== false) return;
    const digest = contentDigest(content);
    if (this.#digests.has(digest)) throw quarantined();
    this.#journal?.check(digest);
  }
}

/** The error of a request that failed a step twice. */
export function quarantined(cause?: unknown): OctavoError {
  return new OctavoError(
    "request_quarantined",
    "Computing this request failed twice, the second time alone. It is not tried again; change its prompt, and report it.",
    { cause },
  );
}
