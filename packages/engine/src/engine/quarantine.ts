import { createHash } from "node:crypto";
import { OctavoError } from "@octavo/protocol";

/** What of a request is known again when it is sent again. */
export interface QuarantinedContent {
  readonly promptTokens: Int32Array;
  readonly adapter?: { readonly name: string } | undefined;
}

/** Requests that are remembered. */
const mostRemembered = 1024;

/** Remembers requests that broke steps, so that sending them again cannot. */
export class Quarantine {
  readonly #digests = new Set<string>();

  get size(): number {
    return this.#digests.size;
  }

  add(content: QuarantinedContent): void {
    const [oldest] = this.#digests;
    if (this.#digests.size >= mostRemembered && oldest !== undefined) this.#digests.delete(oldest);
    this.#digests.add(digestOf(content));
  }

  /** Throws `request_quarantined` for a request that is remembered. */
  check(content: QuarantinedContent): void {
    if (this.#digests.size > 0 && this.#digests.has(digestOf(content))) throw quarantined();
  }
}

/** What whoever sent such a request is told. */
export function quarantined(cause?: unknown): OctavoError {
  return new OctavoError(
    "request_quarantined",
    "Computing this request failed twice, the second time alone. It is not tried again; change its prompt, and report it.",
    { cause },
  );
}

function digestOf({ promptTokens, adapter }: QuarantinedContent): string {
  const { buffer, byteOffset, byteLength } = promptTokens;
  return createHash("sha256")
    .update(`${adapter?.name ?? ""}\0`)
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest("base64");
}
