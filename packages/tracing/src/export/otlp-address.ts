import { httpAddress } from "./http-post.js";

/** What OTLP carries, as its paths name it. */
export type OtlpSignal = "traces" | "metrics" | "logs";

/** OpenTelemetry's rule for base addresses: the signal's path is added to them. */
export function signalAddress(endpoint: string, signal: OtlpSignal): string {
  if (!URL.canParse(endpoint)) return endpoint;
  const url = new URL(endpoint);
  if (url.pathname === "/" || url.pathname === "") url.pathname = `/v1/${signal}`;
  return url.href;
}

/** Where the traces of a base address go, its own path kept: the rule of `OTEL_EXPORTER_OTLP_ENDPOINT`. */
export function tracesBelow(base: string): string {
  if (!URL.canParse(base)) return base;
  const url = new URL(base);
  if (!url.pathname.endsWith("/v1/traces")) url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`;
  return url.href;
}

/** Throws `invalid_option` for what is no address that can be sent to. */
export function checkOtlpEndpoint(endpoint: string, param = "otlpEndpoint"): void {
  httpAddress(endpoint, param);
}
