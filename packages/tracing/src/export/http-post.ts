import { request as httpRequest, Agent as HttpAgent } from "node:http";
import { request as httpsRequest, Agent as HttpsAgent } from "node:https";
import { OctavoError } from "@octavo/protocol";

/** What a receiver answered. */
export interface PostAnswer {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** The first bytes of the body. */
  readonly text: string;
}

const maxAnswerBytes = 64 * 1024;
const maxRetryAfterMs = 60_000;

/** Posts JSON to one address over connections that are kept. */
export class HttpPoster {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: HttpAgent | HttpsAgent;

  /** Throws `invalid_option` for anything but an http or https address. */
  constructor(url: string, headers: Readonly<Record<string, string>>, param: string) {
    const parsed = httpAddress(url, param);
    this.#url = parsed;
    this.#headers = headers;
    const options = { keepAlive: true, maxSockets: 1 };
    this.#agent = parsed.protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
  }

  get url(): string {
    return this.#url.href;
  }

  /** Rejects when there is no whole answer within `timeoutMs`. */
  post(body: string, timeoutMs: number): Promise<PostAnswer> {
    const bytes = Buffer.from(body, "utf8");
    const send = this.#url.protocol === "https:" ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const request = send(
        this.#url,
        {
          method: "POST",
          agent: this.#agent,
          headers: {
            ...this.#headers,
            "content-type": "application/json",
            "content-length": bytes.length,
          },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (piece: string) => {
            if (text.length < maxAnswerBytes) text += piece;
          });
          response.on("error", reject);
          response.on("end", () => {
            resolve({
              status: response.statusCode ?? 0,
              retryAfterMs: retryAfter(response.headers["retry-after"]),
              text,
            });
          });
        },
      );
      const timer = setTimeout(() => {
        request.destroy(new OctavoError("request_timeout", `no answer within ${timeoutMs} ms`));
      }, timeoutMs);
      timer.unref();
      request.on("error", reject);
      request.on("close", () => {
        clearTimeout(timer);
        reject(new OctavoError("request_cancelled", "the connection closed before the answer was complete"));
      });
      request.end(bytes);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Throws `invalid_option` for anything but an http or https address. */
export function httpAddress(url: string, param: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed !== undefined && (parsed.protocol === "http:" || parsed.protocol === "https:")) return parsed;
  const message = `${param}: expected an http or https address such as http://localhost:4318, got ${JSON.stringify(url.slice(0, 200))}`;
  throw new OctavoError("invalid_option", message, { param });
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
function retryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), maxRetryAfterMs);
}
