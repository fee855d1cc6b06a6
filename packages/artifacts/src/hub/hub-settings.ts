import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";

/** Where the hub and the cache are, in the environment variables of Python's huggingface_hub. */
export interface HubSettings {
  /** Without a trailing slash. */
  readonly endpoint: string;
  readonly cacheDir: string;
  readonly token: string | undefined;
  readonly offline: boolean;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** @throws OctavoError `invalid_option` for an HF_ENDPOINT that is no http(s) URL */
export function readHubSettings(env: Environment): HubSettings {
  const home = huggingFaceHome(env);
  return {
    endpoint: readEndpoint(nonEmpty(env["HF_ENDPOINT"]) ?? "https://huggingface.co"),
    cacheDir: resolve(
      expand(nonEmpty(env["HF_HUB_CACHE"]) ?? nonEmpty(env["HUGGINGFACE_HUB_CACHE"]) ?? join(home, "hub")),
    ),
    token: readToken(env, home),
    offline: isTrue(env["HF_HUB_OFFLINE"]) || isTrue(env["TRANSFORMERS_OFFLINE"]),
  };
}

/** Where Hugging Face's tools keep what they keep. */
export function huggingFaceHome(env: Environment): string {
  return resolve(
    expand(nonEmpty(env["HF_HOME"]) ?? join(nonEmpty(env["XDG_CACHE_HOME"]) ?? "~/.cache", "huggingface")),
  );
}

function readEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new OctavoError(
      "invalid_option",
      `HF_ENDPOINT ${JSON.stringify(text)} is not an http or https URL`,
      {
        param: "HF_ENDPOINT",
      },
    );
  }
  return text.replace(/\/+$/, "");
}

function readToken(env: Environment, home: string): string | undefined {
  const given = nonEmpty(env["HF_TOKEN"]) ?? nonEmpty(env["HUGGING_FACE_HUB_TOKEN"]);
  if (given !== undefined) return checkToken(given, "HF_TOKEN");
  if (isTrue(env["HF_HUB_DISABLE_IMPLICIT_TOKEN"])) return undefined;
  const path = expand(nonEmpty(env["HF_TOKEN_PATH"]) ?? join(home, "token"));
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    // Not being logged in is the usual case.
    return undefined;
  }
  const token = nonEmpty(text);
  return token === undefined ? undefined : checkToken(token, path);
}

/** A line break or control character would end up in a header. The value itself stays out of the message. */
function checkToken(token: string, source: string): string {
  if (/^[\x21-\x7e]{1,4096}$/.test(token)) return token;
  throw new OctavoError("invalid_option", `the token from ${source} holds characters that no token has`, {
    param: source,
  });
}

function nonEmpty(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === undefined || trimmed === "" ? undefined : trimmed;
}

function isTrue(text: string | undefined): boolean {
  return ["1", "on", "yes", "true"].includes(text?.trim().toLowerCase() ?? "");
}

function expand(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}
