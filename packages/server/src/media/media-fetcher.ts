import { once } from "node:events";
import { promises as dns, type LookupAddress } from "node:dns";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { OctavoError } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";
import { Turns } from "@octavo/text/template/turns";
import type { ServerConfig } from "../config.js";
import type { RequestContext } from "../http/request-context.js";
import { allowedMediaUrl, type MediaUrl } from "./media-url.js";
import { isPublicAddress } from "./public-address.js";

export type MediaCaller = Pick<RequestContext, "account" | "signal" | "hold">;

/** All addresses of a name, as `dns.lookup` has them. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

type MediaLimits = Pick<ServerConfig, "allowedMediaDomains" | "mediaFetchTimeoutMs" | "maxBodyBytes">;

const maxAtOnce = 8;
/** Further ones are refused. */
const maxWaiting = 64;
const maxRedirects = 3;
const redirects = new Set([301, 302, 303, 307, 308]);
/** The last two are what stores of objects say of what they were not told about. */
const types = /^(image\/|application\/octet-stream\b|binary\/octet-stream\b)/i;

/**
 * Fetches what requests name, from hosts that the operator lists. Names are resolved once for each connection, which goes to what was
 * checked: an address that is public, or listed itself. Redirects are checked as what they came from. No proxy, cookie or key is used.
 */
export class MediaFetcher {
  readonly #limits: MediaLimits;
  readonly #resolve: Resolve;
  readonly #turns = new Turns(maxAtOnce);
  #numWaiting = 0;

  constructor(limits: MediaLimits, resolve: Resolve = (host) => dns.lookup(host, { all: true })) {
    this.#limits = limits;
    this.#resolve = resolve;
  }

  /**
   * What is given as bytes, and what lies behind URLs: together at most as much as a request's body may have.
   * @throws OctavoError `invalid_request`, `unsupported_parameter`, `payload_too_large`, `queue_full`, `overloaded`, or the signal's
   */
  async fetchAll(media: readonly (Uint8Array | MediaUrl)[], caller: MediaCaller): Promise<Uint8Array[]> {
    const failed = new AbortController();
    const signal = AbortSignal.any([caller.signal, failed.signal]);
    let left = this.#limits.maxBodyBytes;
    const take = (bytes: number): void => {
      left -= bytes;
      if (left < 0)
        throw new OctavoError(
          "payload_too_large",
          `what is fetched for a request may have ${this.#limits.maxBodyBytes} bytes (--max-body-size)`,
        );
      caller.hold(bytes);
    };
    try {
      return await Promise.all(
        media.map(async (one) =>
          one instanceof Uint8Array ? one : this.#fetch(one, caller.account.charged.tenant, signal, take),
        ),
      );
    } catch (thrown) {
      failed.abort(thrown);
      throw thrown;
    }
  }

  async #fetch(
    media: MediaUrl,
    tenant: string,
    signal: AbortSignal,
    take: (bytes: number) => void,
  ): Promise<Uint8Array> {
    if (this.#numWaiting >= maxWaiting)
      throw new OctavoError("queue_full", `${this.#numWaiting} images wait to be fetched; try again later.`, {
        retryAfterSeconds: 5,
      });
    this.#numWaiting += 1;
    try {
      return await this.#turns.take(tenant, () => this.#fetchNow(media, signal, take));
    } finally {
      this.#numWaiting -= 1;
    }
  }

  async #fetchNow(media: MediaUrl, signal: AbortSignal, take: (bytes: number) => void): Promise<Uint8Array> {
    const { mediaFetchTimeoutMs: timeoutMs } = this.#limits;
    const { url, param } = media;
    const late = new AbortController();
    const expire = (): void =>
      late.abort(invalidField(param, `${url.host} did not send it within ${timeoutMs / 1000} s`));
    const timer = setTimeout(expire, timeoutMs);
    const either = AbortSignal.any([signal, late.signal]);
    try {
      return await readImage(await this.#open(media, either), param, take);
    } catch (thrown) {
      if (either.aborted) throw OctavoError.from(either.reason);
      if (thrown instanceof OctavoError) throw thrown;
      const problem = thrown instanceof Error && "code" in thrown ? String(thrown.code) : String(thrown);
      throw invalidField(param, `it could not be fetched from ${url.host}: ${problem}`, thrown);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The answer, after redirects. */
  async #open(media: MediaUrl, signal: AbortSignal): Promise<IncomingMessage> {
    const { param } = media;
    let { url } = media;
    for (let hop = 0; hop <= maxRedirects; hop += 1) {
      const answer = await open(url, await this.#addressesOf(url, param, signal), param, signal);
      if (!redirects.has(answer.statusCode ?? 0)) return answer;
      answer.destroy();
      const { location = "" } = answer.headers;
      if (!URL.canParse(location, url.href)) throw invalidField(param, `${url.host} redirects to no URL`);
      ({ url } = allowedMediaUrl(new URL(location, url).href, this.#limits.allowedMediaDomains, param));
    }
    throw invalidField(param, `${media.url.host} redirects more than ${maxRedirects} times`);
  }

  /** Those of a host that may be connected to. */
  async #addressesOf(url: URL, param: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
    signal.throwIfAborted();
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const family = isIP(host);
    const found = family === 0 ? await this.#resolved(host, signal) : [{ address: host, family }];
    const listed = new Set(
      this.#limits.allowedMediaDomains.map((each) => new URL(`http://${each}`).hostname),
    );
    const may = found.filter(
      ({ address }) => isPublicAddress(address) || listed.has(isIP(address) === 6 ? `[${address}]` : address),
    );
    if (may.length > 0) return may;
    throw invalidField(
      param,
      `${url.hostname} has no public address; the server's operator can list the address itself (--allowed-media-domains)`,
    );
  }

  /** The resolver itself knows no signals. */
  #resolved(host: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
    const aborted = once(signal, "abort").then((): never => {
      throw OctavoError.from(signal.reason);
    });
    return Promise.race([this.#resolve(host), aborted]);
  }
}

function open(
  url: URL,
  addresses: readonly LookupAddress[],
  param: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const lookup: LookupFunction = (_host, { all }, found) => {
    const [first = { address: "", family: 0 }] = addresses;
    if (all === true) found(null, [...addresses]);
    else found(null, first.address, first.family);
  };
  const headers = { accept: "image/*", "accept-encoding": "identity", "user-agent": "octavo" };
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    send(url, { agent: false, lookup, signal, headers, maxHeaderSize: 16_384 })
      .on("response", resolve)
      .on("error", reject)
      .on("close", () => reject(invalidField(param, `${url.host} gave no answer`)))
      .end();
  });
}

async function readImage(
  answer: IncomingMessage,
  param: string,
  take: (bytes: number) => void,
): Promise<Uint8Array> {
  try {
    const { statusCode, headers } = answer;
    if (statusCode !== 200) throw invalidField(param, `it was answered with status ${statusCode}`);
    const { "content-type": type, "content-encoding": encoding = "identity" } = headers;
    if (type !== undefined && !types.test(type))
      throw invalidField(param, `what lies there is ${JSON.stringify(type.slice(0, 100))} and no image`);
    if (encoding !== "identity")
      throw invalidField(param, "it came compressed, which the server did not ask for");
    const chunks: Buffer[] = [];
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      take(chunk.length);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    answer.destroy();
  }
}
