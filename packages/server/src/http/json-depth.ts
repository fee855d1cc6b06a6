import { OctavoError } from "@octavo/protocol";

/** More than any request needs; templates and schemas recurse over their input. */
export const maxJsonDepth = 128;

const quote = 0x22;
const backslash = 0x5c;

/** Tracks the nesting of JSON text while its bytes arrive, so that hostile depth is rejected before parsing. */
export class JsonDepthGuard {
  #depth = 0;
  #inString = false;
  #escaped = false;

  /** Throws `invalid_json` when brackets nest deeper than `maxJsonDepth`. */
  push(bytes: Uint8Array): void {
    let depth = this.#depth;
    let inString = this.#inString;
    let escaped = this.#escaped;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i];
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === backslash) escaped = true;
        else if (byte === quote) inString = false;
      } else if (byte === quote) {
        inString = true;
      } else if (byte === 0x5b || byte === 0x7b) {
        depth++;
        if (depth > maxJsonDepth) {
          throw new OctavoError("invalid_json", `the JSON body nests deeper than ${maxJsonDepth} levels`);
        }
      } else if (byte === 0x5d || byte === 0x7d) {
        depth--;
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    this.#escaped = escaped;
  }
}
