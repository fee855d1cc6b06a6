import { type LookupAddress, lookup as systemLookup } from "node:dns";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { BlockList, type LookupFunction } from "node:net";
import { OctavoError } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";
import { Turns } from "@octavo/text/template/turns";
import { type MediaHost, mediaHostOf } from "../config-values.js";
import type { RequestContext } from "../http/request-context.js";

/** For whom something is fetched: `holdBytes` counts it as part of the request's body. */
export type MediaCaller = Pick<RequestContext, "account" | "signal" | "holdBytes">;

export interface MediaFetcherOptions {
  readonly allowedMediaDomains: readonly string[];
  readonly mediaFetchTimeoutMs: number;
  /** Of one image. */
  readonly maxBodyBytes: number;
  /** Default the system's resolver. */
  readonly lookup?: typeof systemLookup;
}

const maxAtOnce = 16;
const maxRedirects = 3;

/** IANA's special-purpose registries: what is not reached through the internet, or carries such addresses within its own. */
const notPublic = new BlockList();
for (const range of `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16
  3fff::/20`.split(/\s+/)) {
  const [network = "", bits] = range.split("/");
  notPublic.addSubnet(network, Number(bits), network.includes(":") ? "ipv6" : "ipv4");
}
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

function isPublic({ address, family }: LookupAddress): boolean {
  return family === 6
    ? globalUnicast.check(address, "ipv6") && !notPublic.check(address, "ipv6")
    : !notPublic.check(address, "ipv4");
}

/**
 * Fetches what requests name by URL, from hosts that the operator lists alone. A name must lead to public addresses, whatever its DNS
 * says meanwhile: the connection goes to the address that was checked. Redirects are followed to listed hosts.
 */
export class MediaFetcher {
  readonly #hosts: readonly MediaHost[];
  readonly #options: MediaFetcherOptions;
  readonly #turns = new Turns(maxAtOnce);

  constructor(options: MediaFetcherOptions) {
    this.#options = options;
    this.#hosts = options.allowedMediaDomains.flatMap((entry) => mediaHostOf(entry) ?? []);
  }

  /** Whether anything is fetched at all. */
  get isOn(): boolean {
    return this.#hosts.length > 0;
  }

  /**
   * The bytes at a URL.
   * @throws OctavoError `invalid_request` that names `param`: a host that is not listed, an answer that is none, too large or too late;
   * `overloaded`, and why the caller left
   */
  async fetch(url: string, param: string, caller: MediaCaller): Promise<Buffer> {
    const { mediaFetchTimeoutMs: timeoutMs } = this.#options;
    return this.#turns.take(caller.account.tenant ?? "", async () => {
      const late = AbortSignal.timeout(timeoutMs);
      try {
        return await this.#follow(url, param, AbortSignal.any([caller.signal, late]), caller);
      } catch (thrown) {
        if (caller.signal.aborted) throw OctavoError.from(caller.signal.reason);
        if (late.aborted) throw invalidField(param, `it was not fetched within ${timeoutMs} ms`);
        if (thrown instanceof OctavoError) throw thrown;
        // what a connection failed of is the operator's to know
        throw invalidField(param, `${hostOf(url)} could not be reached`, thrown);
      }
    });
  }

  async #follow(url: string, param: string, signal: AbortSignal, caller: MediaCaller): Promise<Buffer> {
    let target = this.#allowed(url, param);
    for (let redirects = 0; ; redirects += 1) {
      signal.throwIfAborted();
      const answer = await this.#request(target, param, signal);
      try {
        const { statusCode = 0, headers } = answer;
        if (statusCode === 200) return await this.#read(answer, param, caller);
        if (statusCode < 300 || statusCode > 399 || headers.location === undefined)
          throw invalidField(param, `${target.hostname} answered with status ${statusCode}`);
        if (redirects === maxRedirects) throw invalidField(param, "it is redirected too often");
        target = this.#allowed(headers.location, param, target);
      } finally {
        answer.destroy();
      }
    }
  }

  #allowed(url: string, param: string, base?: URL): URL {
    const target = parsed(url, base);
    const isHttp = target?.protocol === "http:" || target?.protocol === "https:";
    if (target === undefined || !isHttp) throw invalidField(param, "expected an http, https or data URL");
    if (target.username !== "" || target.password !== "")
      throw invalidField(param, "a URL with a user or a password is not fetched");
    const port = target.port || (target.protocol === "http:" ? "80" : "443");
    const isListed = this.#hosts.some(
      (listed) =>
        listed.hostname === target.hostname &&
        (listed.port === undefined ? target.port === "" : listed.port === port),
    );
    if (isListed) return target;
    const what = base === undefined ? "this server fetches nothing from" : "it is redirected to";
    throw invalidField(
      param,
      `${what} ${hostOf(target.href)}, which the operator has not listed (--allowed-media-domains)`,
    );
  }

  #request(target: URL, param: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { get } = target.protocol === "https:" ? https : http;
    return new Promise((resolve, reject) => {
      const headers = { accept: "image/*", "accept-encoding": "identity", "user-agent": "octavo" };
      get(target, { agent: false, headers, signal, lookup: this.#lookup(param) }, resolve).on(
        "error",
        reject,
      );
    });
  }

  /** Connections ask it for names alone: an address can be reached only where it is listed itself. */
  #lookup(param: string): LookupFunction {
    const { lookup = systemLookup } = this.#options;
    return (hostname, options, callback) =>
      lookup(hostname, { ...options, all: true }, (error, addresses) => {
        if (error !== null) return callback(error, []);
        const [first] = addresses;
        if (first === undefined || !addresses.every(isPublic)) {
          const refusal = `${hostname} does not lead to the internet; the operator can list its address instead of its name`;
          return callback(invalidField(param, refusal), []);
        }
        return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
      });
  }

  async #read(answer: IncomingMessage, param: string, { holdBytes }: MediaCaller): Promise<Buffer> {
    const { maxBodyBytes } = this.#options;
    const { "content-encoding": encoding = "identity", "content-length": length } = answer.headers;
    if (encoding !== "identity") throw invalidField(param, "its host sends it compressed, unasked");
    const tooLarge = invalidField(param, `it is larger than ${maxBodyBytes} bytes (--max-body-size)`);
    if (Number(length ?? 0) > maxBodyBytes) throw tooLarge;
    const chunks: Buffer[] = [];
    let numBytes = 0;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      numBytes += chunk.length;
      if (numBytes > maxBodyBytes) throw tooLarge;
      holdBytes(chunk.length);
      chunks.push(chunk);
    }
    if (!answer.complete) throw invalidField(param, "its host closed the connection before its end");
    return Buffer.concat(chunks);
  }
}

/** For people: without user, path and query. */
function hostOf(url: string): string {
  return (parsed(url)?.host ?? "its host").slice(0, 100);
}

function parsed(url: string, base?: URL): URL | undefined {
  return URL.canParse(url, base?.href) ? new URL(url, base) : undefined;
}
