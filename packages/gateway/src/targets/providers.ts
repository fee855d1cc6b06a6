import type { FamilyName } from "../families/families.js";

/** What is particular about the servers of one provider. */
export interface ProviderRow {
  /** Without a path of the API's version; undefined where every installation has its own. */
  readonly url: string | undefined;
  readonly family: FamilyName;
  readonly needsKey: boolean;
  /** How the key is sent. */
  readonly auth: "bearer" | "api-key" | "x-api-key" | "x-goog-api-key" | "sigv4";
  /** What comes before `/chat/completions`. */
  readonly basePath: string;
  /** GET, answered with 2xx by a server that works; undefined: outcomes of calls alone decide. */
  readonly probePath: string | undefined;
  /** Takes `stream_options.include_usage`. */
  readonly streamUsage: boolean;
  /** Continues an answer token by token from `octavo.emitted_token_ids`. */
  readonly resumes: boolean;
  /** Takes vLLM's `priority`. */
  readonly priority: boolean;
  /**
   * How it keeps tenants apart who all come with the gateway's key: `header` takes the tenant's name and divides caches and stored
   * answers by it, `salt` divides its prefix cache by vLLM's `cache_salt`, `none` does neither.
   */
  readonly tenants: "header" | "salt" | "none";
}

const selfHosted = {
  url: undefined,
  family: "openai",
  needsKey: false,
  auth: "bearer",
  basePath: "/v1",
  probePath: "/health",
  streamUsage: true,
  resumes: false,
  priority: false,
  tenants: "none",
} as const satisfies ProviderRow;

const managed = { ...selfHosted, needsKey: true, probePath: undefined } as const;

/** A provider is a row; a wire format is a family. */
export const providers = {
  octavo: { ...selfHosted, resumes: true, priority: true, tenants: "header" },
  vllm: { ...selfHosted, priority: true, tenants: "salt" },
  sglang: { ...selfHosted, priority: true, tenants: "salt" },
  "llama.cpp": selfHosted,
  ollama: { ...selfHosted, url: "http://127.0.0.1:11434", probePath: "/api/version" },
  tgi: selfHosted,
  /** Any server that speaks OpenAI's API. */
  "openai-compatible": { ...selfHosted, probePath: undefined },
  openai: { ...managed, url: "https://api.openai.com" },
  "azure-openai": { ...managed, family: "azure", auth: "api-key", basePath: "/openai/deployments" },
  anthropic: { ...managed, url: "https://api.anthropic.com", family: "anthropic", auth: "x-api-key" },
  gemini: {
    ...managed,
    url: "https://generativelanguage.googleapis.com",
    family: "gemini",
    auth: "x-goog-api-key",
    basePath: "/v1beta",
  },
  bedrock: { ...managed, family: "bedrock", auth: "sigv4", basePath: "" },
  mistral: { ...managed, url: "https://api.mistral.ai" },
  together: { ...managed, url: "https://api.together.xyz" },
  fireworks: { ...managed, url: "https://api.fireworks.ai", basePath: "/inference/v1" },
  groq: { ...managed, url: "https://api.groq.com", basePath: "/openai/v1" },
  deepseek: { ...managed, url: "https://api.deepseek.com" },
} as const satisfies Readonly<Record<string, ProviderRow>>;

export type ProviderName = keyof typeof providers;
export const providerNames = Object.keys(providers) as [ProviderName, ...ProviderName[]];
