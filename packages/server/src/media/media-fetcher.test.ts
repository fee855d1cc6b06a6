import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import { after, before, describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { RequestAccount } from "../account/request-account.js";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { TenantResolver } from "../tenants/tenant-resolver.js";
import { MediaFetcher, type MediaCaller, type Resolve } from "./media-fetcher.js";
import { isPublicAddress } from "./public-address.js";
import { allowedMediaUrl } from "./media-url.js";

const param = "messages[0].content[0].image_url.url";
const image = Buffer.from("bytes of an image");
const account = new RequestAccount({}, new TenantResolver(defaultTenantSettings));
const noNames: Resolve = (host) => assert.fail(`${host} was resolved`);
const addresses = (...all: string[]): LookupAddress[] =>
  all.map((address) => ({ address, family: isIP(address) }));

interface Use {
  /** Beside the server of the tests, by its address. */
  readonly hosts?: readonly string[];
  readonly resolve?: Resolve;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
  readonly hold?: (bytes: number) => void;
}

describe("what is fetched for a request", () => {
  let here = "";
  let port = 0;
  const seen: string[] = [];
  const answers: Record<string, (response: ServerResponse, request: IncomingMessage) => void> = {
    "/a.png": (response) => response.writeHead(200, { "content-type": "image/png" }).end(image),
    "/untyped": (response) => response.writeHead(200).end(image),
    "/stored": (response) => response.writeHead(200, { "content-type": "binary/octet-stream" }).end(image),
    "/to": (response, { url = "" }) =>
      response.writeHead(302, { location: new URL(url, "http://x").searchParams.get("url") ?? "" }).end(),
    "/round": (response) => response.writeHead(307, { location: "/round" }).end(),
    "/nowhere": (response) => response.writeHead(301).end(),
    "/silent": () => {},
    "/drip": (response) => {
      response.writeHead(200, { "content-type": "image/png" });
      const timer = setInterval(() => response.write("x"), 10);
      response.on("close", () => clearInterval(timer));
    },
    "/endless": (response) => {
      response.writeHead(200, { "content-type": "image/png" });
      const push = (): void => {
        while (response.write(Buffer.alloc(1 << 16)));
      };
      response.on("drain", push);
      push();
    },
    "/long": (response) => {
      response.writeHead(200, { "content-type": "image/png", "content-length": 1000 });
      response.write(image);
      setImmediate(() => response.destroy());
    },
    "/short": ({ socket }) =>
      void socket?.end(`HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n${String(image)}HTTP/1.1 200 OK\r\n\r\n`),
    "/upgrade": ({ socket }) =>
      void socket?.end("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    "/html": (response) =>
      response.writeHead(200, { "content-type": "text/html" }).end("<title>secret</title>"),
    "/json": (response) => response.writeHead(200, { "content-type": "application/json" }).end("{}"),
    "/gzip": (response) =>
      response.writeHead(200, { "content-type": "image/png", "content-encoding": "gzip" }).end(image),
    "/missing": (response) => response.writeHead(404).end(),
    "/reset": ({ socket }) => void socket?.destroy(),
  };
  const server = createServer((request, response) => {
    const { url = "", headers } = request;
    seen.push(`${headers.host}${url}`);
    answers[url.split("?")[0] ?? ""]?.(response, request);
  });
  before(async () => {
    await once(server.listen(0, "127.0.0.1"), "listening");
    ({ port } = server.address() as AddressInfo);
    here = `127.0.0.1:${port}`;
  });
  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const fetchAll = async (urls: readonly string[], use: Use = {}): Promise<string[]> => {
    const { hosts = [], resolve = noNames, timeoutMs = 10_000, maxBytes = 1 << 20 } = use;
    const { signal = new AbortController().signal, hold = () => {} } = use;
    const allowedMediaDomains = [here, ...hosts];
    const fetcher = new MediaFetcher(
      { allowedMediaDomains, mediaFetchTimeoutMs: timeoutMs, maxBodyBytes: maxBytes },
      resolve,
    );
    const media = urls.map((url) => allowedMediaUrl(url, allowedMediaDomains, param));
    const caller: MediaCaller = { account, signal, hold };
    return (await fetcher.fetchAll(media, caller)).map((bytes) => Buffer.from(bytes).toString());
  };
  const refusal = async (url: string, use: Use = {}): Promise<OctavoError> => {
    const thrown: unknown = await fetchAll([url], use).catch((error: unknown) => error);
    assert.ok(thrown instanceof OctavoError, `${url} was not refused: ${String(thrown)}`);
    return thrown;
  };
  const at = (path: string): string => `http://${here}${path}`;

  it("comes in order from listed hosts, beside bytes that are there", async () => {
    assert.deepEqual(
      await fetchAll([at("/a.png"), at("/untyped"), at("/stored")]),
      Array(3).fill(String(image)),
    );
    const fetcher = new MediaFetcher({
      allowedMediaDomains: [],
      mediaFetchTimeoutMs: 1000,
      maxBodyBytes: 1,
    });
    const signal = new AbortController().signal;
    assert.deepEqual(await fetcher.fetchAll([image], { account, signal, hold: () => assert.fail() }), [
      image,
    ]);
  });

  it("URLs that lead elsewhere than they seem to are refused before a name is resolved", async () => {
    const hosts = ["images.example.com"];
    const cases: readonly (readonly [string, RegExp])[] = [
      ["http://2130706433/a.png", /nothing from 127\.0\.0\.1;/],
      ["http://0x7f000001/a.png", /nothing from 127\.0\.0\.1;/],
      ["http://0177.0.0.01/a.png", /nothing from 127\.0\.0\.1;/],
      ["http://127.1/a.png", /nothing from 127\.0\.0\.1;/],
      ["http://127.0.0.1./a.png", /nothing from 127\.0\.0\.1;/],
      ["http://①②⑦.⓪.⓪.①/a.png", /nothing from 127\.0\.0\.1;/],
      ["http://0/a.png", /nothing from 0\.0\.0\.0;/],
      ["http://[::ffff:127.0.0.1]/a.png", /nothing from \[::ffff:7f00:1\];/],
      ["http://[::1]/a.png", /nothing from \[::1\];/],
      ["http://localhost/a.png", /nothing from localhost;/],
      ["http://169.254.169.254/latest/meta-data/", /nothing from 169\.254\.169\.254;/],
      ["http://images.example.com@169.254.169.254/", /a name or password is not fetched/],
      ["http://169.254.169.254@images.example.com/", /a name or password is not fetched/],
      ["http://:key@images.example.com/", /a name or password is not fetched/],
      ["http://169.254.169.254\\@images.example.com/", /nothing from 169\.254\.169\.254;/],
      ["http://169.254.169.254#@images.example.com/", /nothing from 169\.254\.169\.254;/],
      ["http://images.example.com./a.png", /nothing from images\.example\.com\.;/],
      ["http://images.example.com.evil.org/", /nothing from images\.example\.com\.evil\.org;/],
      ["http://cdn.images.example.com/", /nothing from cdn\.images\.example\.com;/],
      ["http://images.example.com:22/", /nothing from images\.example\.com:22;/],
      ["https://images.example.com:80/", /nothing from images\.example\.com:80;/],
      ["file:///etc/passwd", /http and https alone, not file:/],
      ["gopher://images.example.com/_x", /http and https alone, not gopher:/],
      ["blob:http://images.example.com/1", /http and https alone, not blob:/],
      ["http://", /not a URL/],
      ["http://[::1/", /not a URL/],
      [`http://images.example.com/${"a".repeat(5000)}`, /not a URL of up to 4096/],
    ];
    for (const [url, message] of cases) {
      const { message: said, param: named } = await refusal(url, { hosts });
      assert.match(said, message, url);
      assert.equal(named, param);
    }
  });

  it("a listed name is not followed to addresses that are nobody's or this network's", async () => {
    // 127.0.0.1 is the server of these tests, and listed
    const special =
      "127.255.0.1 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.255 192.168.0.1 169.254.169.254 100.100.100.200 192.0.0.192 198.18.0.1 " +
      "224.0.0.1 255.255.255.255 168.63.129.16 ::1 :: ::ffff:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::7f00:1 fe80::1 fe80::1%lo " +
      "fd00:ec2::254 ff02::1 2001::1 2002:7f00:1::1 2001:db8::1 nonsense";
    for (const address of special.split(" ")) {
      const resolve: Resolve = () => Promise.resolve(addresses(address));
      const { message } = await refusal("http://images.example.com/a.png", {
        hosts: ["images.example.com"],
        resolve,
      });
      assert.match(message, /images\.example\.com has no public address/, address);
    }
  });

  it("public addresses are", () => {
    for (const address of ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00::1"])
      assert.ok(isPublicAddress(address), address);
  });

  it("a name is resolved once, and connected to is what was checked", async () => {
    const rounds = [addresses("10.0.0.1", "127.0.0.1"), addresses("127.0.0.2")];
    let round = 0;
    const resolve: Resolve = () => Promise.resolve(rounds[round++] ?? []);
    const host = `images.example.com:${port}`;
    assert.deepEqual(await fetchAll([`http://${host}/a.png`], { hosts: [host], resolve }), [String(image)]);
    assert.equal(round, 1);
    assert.equal(seen.at(-1), `${host}/a.png`);
  });

  it("redirects are checked as what they came from", async () => {
    const to = (url: string): string => at(`/to?url=${encodeURIComponent(url)}`);
    assert.deepEqual(await fetchAll([to("/a.png"), to(to("/stored"))]), Array(2).fill(String(image)));
    const cases: readonly (readonly [string, RegExp])[] = [
      [to("http://169.254.169.254/latest/meta-data/"), /nothing from 169\.254\.169\.254;/],
      [to("//2130706433:1/"), /nothing from 127\.0\.0\.1:1;/],
      [to(`http://user@${here}/a.png`), /a name or password/],
      [to("file:///etc/passwd"), /http and https alone/],
      [to("data:image/png;base64,AAAA"), /http and https alone/],
      [to("http://[::1"), /redirects to no URL/],
      [at("/nowhere"), /redirects more than 3 times|redirects to no URL/],
      [at("/round"), /redirects more than 3 times/],
    ];
    for (const [url, message] of cases) assert.match((await refusal(url)).message, message);
    const host = `images.example.com:${port}`;
    const rounds = [addresses("127.0.0.1"), addresses("169.254.169.254")];
    const resolve: Resolve = () => Promise.resolve(rounds.shift() ?? []);
    const rebound = `http://${host}/to?url=${encodeURIComponent(`http://${host}/a.png`)}`;
    assert.match((await refusal(rebound, { hosts: [host], resolve })).message, /no public address/);
  });

  it("time is bounded: silence, drops, names that never resolve", async () => {
    const timeoutMs = 200;
    for (const path of ["/silent", "/drip"])
      assert.match((await refusal(at(path), { timeoutMs })).message, /did not send it within 0\.2 s/);
    const use = { timeoutMs, hosts: ["images.example.com"], resolve: () => new Promise<never>(() => {}) };
    assert.match((await refusal("http://images.example.com/", use)).message, /did not send it within 0\.2 s/);
  });

  it("bytes are bounded, those of a request together, and counted with bodies", async () => {
    const endless = await refusal(at("/endless"), { maxBytes: 1 << 18 });
    assert.equal(endless.code, "payload_too_large");
    const two = fetchAll([at("/a.png"), at("/a.png")], { maxBytes: 2 * image.length - 1 });
    await assert.rejects(two, { code: "payload_too_large" });
    let held = 0;
    await fetchAll([at("/a.png"), at("/a.png")], { hold: (bytes) => (held += bytes) });
    assert.equal(held, 2 * image.length);
    const full = new OctavoError("overloaded", "no room");
    const hold = (): never => {
      throw full;
    };
    assert.equal(await refusal(at("/a.png"), { hold }), full);
  });

  it("lengths that are lies, other statuses, types and encodings", async () => {
    assert.deepEqual(await fetchAll([at("/short")]), [String(image).slice(0, 5)]);
    const cases: readonly (readonly [string, RegExp])[] = [
      ["/long", /could not be fetched from 127\.0\.0\.1:\d+: ECONNRESET/],
      ["/reset", /could not be fetched from 127\.0\.0\.1:\d+: ECONNRESET/],
      ["/upgrade", /gave no answer|could not be fetched/],
      ["/html", /is "text\/html" and no image/],
      ["/json", /is "application\/json" and no image/],
      ["/gzip", /came compressed/],
      ["/missing", /status 404/],
    ];
    for (const [path, message] of cases) {
      const { message: said, status } = await refusal(at(path));
      assert.match(said, message, path);
      assert.equal(status, 400);
      assert.doesNotMatch(said, /secret/);
    }
  });

  it("ends with its request, and with the first image that fails", async () => {
    const abort = new AbortController();
    const left = refusal(at("/silent"), { signal: abort.signal });
    const cause = new OctavoError("request_cancelled", "the client left");
    setImmediate(() => abort.abort(cause));
    assert.equal(await left, cause);
    const [silent] = await Promise.all([
      once(server, "request").then(([request]: IncomingMessage[]) => once(request!.socket, "close")),
      assert.rejects(
        fetchAll([at("/silent"), "http://images.example.com/"], {
          hosts: ["images.example.com"],
          resolve: async () => (await once(server, "request"), addresses("10.0.0.1")),
        }),
        /no public address/,
      ),
    ]);
    assert.ok(silent);
  });

  it("only so many wait", async () => {
    const abort = new AbortController();
    const many = fetchAll(Array<string>(65).fill(at("/silent")), { signal: abort.signal });
    await assert.rejects(many, { code: "queue_full" });
  });
});
