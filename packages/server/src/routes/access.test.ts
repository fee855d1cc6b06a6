import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fieldsWithEffect } from "@octavo/protocol";
import type { ServerConfig } from "../config.js";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { startTestServer, type TestServer } from "../testing/test-server.js";
import type { Endpoint } from "./endpoint.js";
import { endpoints, endpointsWith } from "./endpoints.js";

type Headers = Readonly<Record<string, string>>;
const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });

/** The callers. Tenants have names that answers can be searched for. */
const callers = {
  "no key": {},
  "a wrong key": bearer("wrong"),
  "tenant A": bearer("a-1"),
  "A's second key": bearer("a-2"),
  "tenant B": bearer("b-1"),
  gateway: bearer("gateway"),
  operator: bearer("op"),
} as const;
type CallerName = keyof typeof callers;

/** Whom each kind of access rejects. */
const rejected: Readonly<Record<Endpoint["access"], readonly CallerName[]>> = {
  public: [],
  tenant: ["no key", "a wrong key"],
  admin: ["no key", "a wrong key", "tenant A", "A's second key", "tenant B", "gateway"],
};

const config: Partial<ServerConfig> = {
  apiKeys: ["op"],
  enableFaultInjection: true,
  allowRuntimeLoraUpdating: true,
  replicaKey: "known",
  tenants: {
    ...defaultTenantSettings,
    keys: [
      { key: "a-1", tenant: "acme-corp" },
      { key: "a-2", tenant: "acme-corp", lane: "batch" },
      { key: "b-1", tenant: "bravo-corp" },
      { key: "gateway", tenantFrom: "header" },
    ],
  },
};

const start = (settings = config): Promise<TestServer> =>
  startTestServer(settings, { takesFaults: true, reply: () => "a secret of A" });

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function send(
  { url }: TestServer,
  method: string,
  path: string,
  headers: Headers,
  body: object = {},
): Promise<Answer & { readonly headers: globalThis.Headers }> {
  const response = await fetch(url + path, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(method === "POST" && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const all = endpointsWith({ enableFaultInjection: true, replicaKey: "known" });
const nameOf = ({ method, path }: Pick<Endpoint, "method" | "path">): string => `${method} ${path}`;

describe("every endpoint with every key", () => {
  it("answers those whom its row lets in, and rejects the others, however its path is written", async () => {
    await using server = await start();
    for (const row of all) {
      const path = row.path.replace(/\*$/, "x");
      const written = [
        path,
        `${path}/`,
        path.replace(/(.)$/, (last) => `%${last.charCodeAt(0).toString(16)}`),
      ];
      const methods = row.method === "GET" ? ["GET", "HEAD"] : [row.method];
      for (const [caller, headers] of Object.entries(callers)) {
        const isRejected = rejected[row.access].includes(caller as CallerName);
        for (const method of methods) {
          for (const target of written) {
            const { status, text } = await send(server, method, target, headers);
            const said = `${method} ${target} with ${caller}: ${status} ${text}`;
            assert.equal(status === 401, isRejected, said);
            assert(status < 500 || status === 501, said);
          }
        }
      }
    }
  });

  it("is open to all on a server without keys", async () => {
    await using server = await start({ ...config, apiKeys: [], tenants: defaultTenantSettings });
    for (const { method, path } of all) {
      const { status } = await send(server, method, path.replace(/\*$/, "x"), {});
      assert(status !== 401 && (status < 500 || status === 501), `${method} ${path}: ${status}`);
    }
  });

  it("lets only the operator change what belongs to nobody", () => {
    for (const row of all) {
      if (row.ids === "shared" && row.method !== "GET") assert.equal(row.access, "admin", nameOf(row));
      if (row.ids === "caller") assert.equal(row.access, "tenant", nameOf(row));
    }
  });
});

type Store = (server: TestServer) => Promise<string>;

const storeResponse: Store = async (server) => {
  const body = { input: "hi", background: true };
  const { text } = await send(server, "POST", "/v1/responses", callers["tenant A"], body);
  return (JSON.parse(text) as { id: string }).id;
};

const storeRecord: Store = async (server) => {
  const made = await send(server, "POST", "/v1/completions", callers["tenant A"], { prompt: "hi" });
  return made.headers.get("x-octavo-request-id") ?? "";
};

/** How A stores what the ids of an endpoint find, and what may be asked of it there. */
const stores: Readonly<Record<string, { readonly store: Store; readonly asks: readonly string[] }>> = {
  "GET /v1/responses/*": { store: storeResponse, asks: ["ID"] },
  "POST /v1/responses/*": { store: storeResponse, asks: ["ID/cancel"] },
  "GET /v1/requests/*": { store: storeRecord, asks: ["ID", "ID/neighbours"] },
};

/** Fields of bodies that end in `_id` and have an effect: whether they find what somebody stored, or only name something. */
const bodyIds: Readonly<Record<string, "stored" | "name">> = {
  previous_response_id: "stored",
  request_id: "name",
  session_id: "name",
};

const recorded = {
  requestId: "x",
  tenant: "acme-corp",
  isOver: true,
  arrivalOffsetMs: 0,
  queueMs: 0,
  timeToFirstTokenMs: undefined,
  e2eMs: 1,
  promptTokens: 1,
  cachedTokens: 0,
  outputTokens: [1],
  tokensMeanwhile: 0,
  kernelMsMeanwhile: 0,
};

const owners: readonly Headers[] = [
  callers["tenant A"],
  callers["A's second key"],
  { ...callers.gateway, "x-tenant-id": "acme-corp" },
];
const strangers: readonly Headers[] = [
  callers["tenant B"],
  callers.operator,
  callers.gateway,
  { ...callers["tenant B"], "x-tenant-id": "acme-corp" },
  { ...callers.operator, "x-tenant-id": "acme-corp" },
  { ...callers.gateway, "x-tenant-id": "bravo-corp" },
];

describe("what a tenant stored", () => {
  for (const row of all.filter(({ ids }) => ids === "caller")) {
    it(`is found by all of its keys and no other: ${nameOf(row)}`, async () => {
      const entry = stores[nameOf(row)];
      assert(entry !== undefined, `say here how something is stored that ${nameOf(row)} finds`);
      await using server = await start();
      const { engine } = server.model;
      engine.neighbours = { request: recorded, neighbours: [], numOmitted: 0 };
      engine.behaviour.stepDelayMs = row.method === "GET" ? 0 : 20;
      for (const ask of entry.asks) {
        const request = (id: string, headers: Headers): Promise<Answer> =>
          send(server, row.method, row.path.replace("*", ask.replace("ID", id)), headers);
        const unknown = await request("unknown", callers["tenant B"]);
        for (const owner of owners) {
          const id = await entry.store(server);
          if (row.method === "GET") await engine.whenIdle();
          const numAborted = engine.aborted.length;
          for (const stranger of strangers) {
            const { status, text } = await request(id, stranger);
            assert.equal(status, 404);
            assert.equal(text.replaceAll(id, "unknown"), unknown.text, "it is as if there were none");
          }
          assert.equal(engine.aborted.length, numAborted, "nobody else cancelled it");
          assert.equal((await request(id, owner)).status, 200);
        }
      }
    });
  }

  it("is continued by all of its keys and no other", async () => {
    await using server = await start();
    for (const row of endpoints) {
      if (row.request === undefined) continue;
      const idle = [...fieldsWithEffect(row.request, "none"), ...fieldsWithEffect(row.request, "refused")];
      const ids = Object.keys(row.request.shape).filter((name) => name.endsWith("_id"));
      for (const field of ids.filter((name) => !idle.includes(name))) {
        assert(field in bodyIds, `say here whether ${field} of ${nameOf(row)} finds what is stored`);
        if (bodyIds[field] === "name") continue;
        const id = await storeResponse(server);
        await server.model.engine.whenIdle();
        const ask = (headers: Headers): Promise<Answer> =>
          send(server, row.method, row.path, headers, { input: "more", [field]: id });
        const numRendered = server.model.rendered.length;
        for (const stranger of strangers) assert.equal((await ask(stranger)).status, 404);
        assert.equal(server.model.rendered.length, numRendered, "no prompt was made of it");
        for (const owner of owners) assert.equal((await ask(owner)).status, 200);
      }
    }
  });

  it("stays however much another stores", async () => {
    await using server = await start();
    const id = await storeResponse(server);
    const flood = (): Promise<Answer> =>
      send(server, "POST", "/v1/responses", callers["tenant B"], { input: "x", max_output_tokens: 1 });
    for (let round = 0; round < 20; round += 1) await Promise.all(Array.from({ length: 51 }, flood));
    const { status, text } = await send(server, "GET", `/v1/responses/${id}`, callers["A's second key"]);
    assert.equal(status, 200);
    assert.match(text, /a secret of A/);
  });
});

describe("names of tenants", () => {
  it("are in no answer to those who have not the operator's key", async () => {
    await using server = await start();
    const chat = { messages: [{ role: "user", content: "hi" }] };
    const names = ["acme-corp", "bravo-corp", "acme-merger"];
    const feature = { "x-octavo-feature": "acme-merger" };
    for (const headers of [owners[0]!, strangers[0]!])
      await send(server, "POST", "/v1/chat/completions", { ...headers, ...feature }, chat);
    const unnamed = all.filter(({ access, method }) => access !== "admin" && method === "GET");
    for (const { path } of unnamed.filter((row) => row.ids === undefined)) {
      for (const caller of ["no key", "a wrong key", "tenant A", "tenant B", "gateway"] as const) {
        const { text } = await send(server, "GET", path, callers[caller]);
        assert(!names.some((name) => text.includes(name)), `GET ${path} with ${caller}`);
      }
    }
    const scrape = async (headers: Headers): Promise<string> =>
      (await send(server, "GET", "/metrics", headers)).text;
    const named = await scrape(callers.operator);
    for (const name of names) assert(named.includes(`"${name}"`), name);
    const series = (text: string): number => text.split("\n").filter((line) => !line.startsWith("#")).length;
    const open = await scrape({});
    assert.equal(series(open), series(named), "only names are hidden");
    assert.equal(new Set(open.match(/tenant="hidden-[\da-f]{12}"/g)).size, 2, "each keeps series of its own");
  });
});
