import { readFileSync } from "node:fs";

/** This package's version, as `/version` and `system_fingerprint` report it. */
export const serverVersion: string = readVersion();

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  if (
    typeof manifest === "object" &&
    manifest !== null &&
    "version" in manifest &&
    typeof manifest.version === "string"
  ) {
    return manifest.version;
  }
  return "0.0.0";
}
