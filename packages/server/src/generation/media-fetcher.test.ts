import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { mediaDomains } from "../config-values.js";
import { RequestAccount } from "../account/request-account.js";
import { TenantResolver } from "../tenants/tenant-resolver.js";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { MediaFetcher, type MediaCaller, type MediaFetcherOptions } from "./media-fetcher.js";

const param = "url";
const listed = "images.example.com";
const callerOf = (more: Partial<MediaCaller> = {}): MediaCaller => ({
  account: new RequestAccount({}, new TenantResolver(defaultTenantSettings)),
  signal: new AbortController().signal,
  holdBytes: () => {},
  ...more,
});

/** A resolver that knows one answer to everything. */
function answering(...addresses: string[]): NonNullable<MediaFetcherOptions["lookup"]> {
  const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  const lookup = (_: string, __: object, callback: (error: null, all: typeof found) => void): void =>
    callback(null, found);
  return lookup as never;
}

describe("images that requests name by URL", () => {
  const routes: Record<string, RequestListener> = {
    "/ok": (_, response) => response.end("image"),
    "/moved": (_, response) => response.writeHead(302, { location: "/ok" }).end(),
    "/loop": (_, response) => response.writeHead(302, { location: "/loop" }).end(),
    "/to-metadata": (_, response) =>
      response.writeHead(307, { location: "http://169.254.169.254/latest/meta-data" }).end(),
    "/to-file": (_, response) => response.writeHead(301, { location: "file:///etc/passwd" }).end(),
    "/to-other-port": (_, response) => response.writeHead(301, { location: "http://127.0.0.1:1/" }).end(),
    "/nowhere": (_, response) => response.writeHead(302).end(),
    "/missing": (_, response) => response.writeHead(404).end("secret"),
    "/partial": (_, response) => response.writeHead(206).end("part"),
    "/huge": (_, response) => response.writeHead(200, { "content-length": 10 ** 12 }).write("x"),
    "/endless": (_, response) => {
      const write = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(512)));
      };
      response.on("drain", write).on("error", () => {});
      write();
    },
    "/zipped": (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end("zz"),
    "/drips": (_, response) => {
      const timer = setInterval(() => response.write("x"), 20);
      response.on("close", () => clearInterval(timer));
    },
    "/silent": () => {},
    "/cut": (_, response) => {
      response.writeHead(200, { "content-length": 100 }).write("x", () => response.destroy());
    },
    "/headers": (_, response) => response.writeHead(200, { x: "y".repeat(100_000) }).end(),
  };
  let server: Server;
  let here: string;
  let numCalls = 0;
  before(async () => {
    server = createServer((request, response) => {
      numCalls += 1;
      routes[request.url ?? ""]?.(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    here = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const fetcherOf = (
    allowedMediaDomains: readonly string[],
    more: Partial<MediaFetcherOptions> = {},
  ): MediaFetcher =>
    new MediaFetcher({ allowedMediaDomains, mediaFetchTimeoutMs: 60_000, maxBodyBytes: 4096, ...more });
  const refused = async (fetching: Promise<unknown>, message: RegExp, code = "invalid_request") => {
    await assert.rejects(fetching, (error: unknown) => {
      assert.ok(error instanceof OctavoError, String(error));
      assert.deepEqual([error.code, error.param], [code, code === "invalid_request" ? param : undefined]);
      assert.match(error.message, message);
      return true;
    });
  };

  it("bytes come from a listed host, and count as held until the request is over", async () => {
    let held = 0;
    const fetcher = fetcherOf([here]);
    const caller = callerOf({ holdBytes: (bytes) => (held += bytes) });
    assert.equal(String(await fetcher.fetch(`http://${here}/ok`, param, caller)), "image");
    assert.equal(String(await fetcher.fetch(`http://${here}/moved`, param, caller)), "image");
    assert.equal(held, 10);
  });

  it("no other host is asked, however it is written", async () => {
    const port = here.split(":")[1];
    const fetcher = fetcherOf([listed], { lookup: answering("127.0.0.1") });
    const numBefore = numCalls;
    for (const url of [
      `http://${here}/ok`,
      `http://2130706433:${port}/ok`,
      `http://0x7f.1:${port}/ok`,
      `http://0177.0.0.1:${port}/ok`,
      `http://[::ffff:127.0.0.1]:${port}/ok`,
      `http://[::1]:${port}/ok`,
      `http://localhost:${port}/ok`,
      `http://${listed}@${here}/ok`,
      `http://${listed}:${port}@${here}/ok`,
      `http://user:word@${listed}/ok`,
      `http://${here}#@${listed}/ok`,
      `http://${here}\\@${listed}/ok`,
      `http://${listed}.:${port}/ok`,
      `http://${listed}./ok`,
      `http://${listed}:${port}/ok`,
      `http://${listed}.evil.test/ok`,
      `http://evil.test/${listed}`,
      `//${here}/ok`,
      `http:\\\\${here}\\ok`,
      `http://${listed}%2eevil.test/`,
      "file:///etc/passwd",
      `ftp://${listed}/ok`,
      `gopher://${listed}/ok`,
      "/etc/passwd",
      "http://",
      "",
    ]) {
      await refused(
        fetcher.fetch(url, param, callerOf()),
        /fetches nothing from|expected an http|not fetched/,
      );
    }
    assert.equal(numCalls, numBefore);
  });

  it("a listed name must lead to the internet", async () => {
    for (const addresses of [
      ...`127.0.0.1 10.1.2.3 172.31.255.1 192.168.0.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 255.255.255.255 ::1 :: fd00::1
        fe80::1 fec0::1 ff02::1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe ::127.0.0.1 64:ff9b::a9fe:a9fe ::ffff:0:7f00:1 1::1 4000::1 2002:7f00:1::1 2001::1`
        .split(/\s+/)
        .map((address) => [address]),
      ["93.184.216.34", "10.0.0.1"],
      [],
    ]) {
      const fetcher = fetcherOf([listed], { lookup: answering(...addresses) });
      await refused(fetcher.fetch(`http://${listed}/ok`, param, callerOf()), /does not lead to the internet/);
    }
  });

  it("the connection goes to the address that was checked", async () => {
    let numLookups = 0;
    const checked = answering("2001:4860:4860::8888");
    const lookup = ((...given: Parameters<typeof checked>) => {
      numLookups += 1;
      return numLookups === 1 ? checked(...given) : answering("127.0.0.1")(...given);
    }) as typeof checked;
    const fetcher = fetcherOf([`${listed}:${here.split(":")[1]}`], { lookup, mediaFetchTimeoutMs: 100 });
    const numBefore = numCalls;
    await refused(
      fetcher.fetch(`http://${listed}:${here.split(":")[1]}/ok`, param, callerOf()),
      /could not be reached|was not fetched within/,
    );
    assert.deepEqual([numLookups, numCalls], [1, numBefore]);
  });

  it("redirects lead to listed hosts alone, and end", async () => {
    const fetcher = fetcherOf([here]);
    for (const [path, message] of [
      ["/to-metadata", /redirected to 169\.254\.169\.254, which the operator has not listed/],
      ["/to-file", /expected an http/],
      ["/to-other-port", /redirected to 127\.0\.0\.1:1,/],
      ["/loop", /redirected too often/],
      ["/nowhere", /answered with status 302/],
    ] as const) {
      await refused(fetcher.fetch(`http://${here}${path}`, param, callerOf()), message);
    }
  });

  it("answers that are none, too large or cut are refused, and say nothing of what they hold", async () => {
    const fetcher = fetcherOf([here]);
    for (const [path, message] of [
      ["/missing", /^[^]*answered with status 404$/],
      ["/partial", /answered with status 206/],
      ["/huge", /larger than 4096 bytes \(--max-body-size\)/],
      ["/endless", /larger than 4096 bytes/],
      ["/zipped", /compressed, unasked/],
      ["/cut", /could not be reached|closed the connection/],
      ["/headers", /could not be reached/],
    ] as const) {
      await refused(fetcher.fetch(`http://${here}${path}`, param, callerOf()), message);
    }
    const gone = fetcherOf(["127.0.0.1:1"]);
    await refused(
      gone.fetch("http://127.0.0.1:1/", param, callerOf()),
      /^[^]*127\.0\.0\.1:1 could not be reached$/,
    );
  });

  it("what drips or is silent ends in time, and the client who left is not waited for", async () => {
    const fetcher = fetcherOf([here], { mediaFetchTimeoutMs: 200 });
    for (const path of ["/drips", "/silent"])
      await refused(fetcher.fetch(`http://${here}${path}`, param, callerOf()), /not fetched within 200 ms/);
    const abort = new AbortController();
    const pending = fetcherOf([here]).fetch(
      `http://${here}/silent`,
      param,
      callerOf({ signal: abort.signal }),
    );
    abort.abort(new OctavoError("request_cancelled", "left"));
    await refused(pending, /left/, "request_cancelled");
  });

  it("a server without room for more says so", async () => {
    const holdBytes = (): void => {
      throw new OctavoError("overloaded", "no room");
    };
    const fetching = fetcherOf([here]).fetch(`http://${here}/ok`, param, callerOf({ holdBytes }));
    await refused(fetching, /no room/, "overloaded");
  });

  it("hosts are listed without scheme, path, user or wildcard", () => {
    for (const good of [
      listed,
      "IMAGES.example.com:8443",
      "10.0.0.7:8080",
      "[fd00::7]",
      "[fd00::7]:80",
      "münchen.example",
    ])
      assert.ok(mediaDomains.accepts([good]), good);
    for (const bad of [
      "https://a.example",
      "a.example/x",
      "*.example",
      "u@a.example",
      "a.example:0x",
      "a:99999",
      "fd00::7",
      "[::1",
      "a b",
      "a\\b",
      "?",
    ])
      assert.ok(!mediaDomains.accepts([bad]), bad);
  });
});
