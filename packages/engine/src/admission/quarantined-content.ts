import { createHash } from "node:crypto";

/** What identifies a request when it is sent again. */
export interface QuarantinedContent {
  readonly promptTokens: Int32Array;
  readonly adapter?: { readonly name: string } | undefined;
}

/** SHA-256 in base 64. */
export function contentDigest({ promptTokens, adapter }: QuarantinedContent): string {
  const { buffer, byteOffset, byteLength } = promptTokens;
  return createHash("sha256")
    .update(`${adapter?.name ?? ""}\0`)
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest("base64");
}
