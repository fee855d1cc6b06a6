import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ApiKeys } from "./http/api-keys.js";
import { readTls } from "./http/tls.js";
import { defaultTenantSettings } from "./tenants/tenant-settings.js";
import { startTestServer } from "./testing/test-server.js";

const folder = mkdtempSync(join(tmpdir(), "octavo-tls-"));
after(() => rmSync(folder, { recursive: true }));
const keyfile = join(folder, "key.pem");
const certfile = join(folder, "cert.pem");

/** A certificate of its own for 127.0.0.1, over the one before. */
function certify(name: string): void {
  const files = ["-keyout", keyfile, "-out", certfile];
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      ...files,
      ...subject,
    ],
    { stdio: "ignore" },
  );
}

const hasOpenssl = ((): boolean => {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

/** The status, and the name in the certificate. */
function get(url: string, path: string, key: string): Promise<{ status: number | undefined; name: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    const ca = readFileSync(certfile);
    const call = request(
      `${url}${path}`,
      { ca, headers, agent: false, rejectUnauthorized: false },
      (response) => {
        const socket = response.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } };
        const name = socket.getPeerCertificate().subject.CN;
        response.resume().on("end", () => resolve({ status: response.statusCode, name }));
      },
    );
    call.on("error", reject).end();
  });
}

test(
  "keys and certificates are replaced for requests and connections that come later",
  { skip: hasOpenssl ? false : "no openssl" },
  async () => {
    certify("first");
    await using server = await startTestServer({
      apiKeys: ["old"],
      sslKeyfile: keyfile,
      sslCertfile: certfile,
    });
    assert.match(server.url, /^https:/);
    assert.deepEqual(await get(server.url, "/v1/models", "old"), { status: 200, name: "first" });
    assert.equal((await get(server.url, "/v1/models", "new")).status, 401);
    certify("second");
    server.server.reload({ apiKeys: ["new"], tenants: defaultTenantSettings });
    assert.deepEqual(await get(server.url, "/v1/models", "new"), { status: 200, name: "second" });
    assert.equal((await get(server.url, "/v1/models", "old")).status, 401);
    const lanes = { ...defaultTenantSettings, lanes: ["other"], defaultLane: "other" };
    assert.throws(() => server.server.reload({ apiKeys: ["third"], tenants: lanes }), {
      code: "invalid_option",
      message: /lanes cannot change/,
    });
    assert.equal((await get(server.url, "/v1/models", "new")).status, 200, "nothing was changed");
  },
);

test("a key keeps its number whatever stands before it", () => {
  const keys = new ApiKeys(["a", "b"]);
  const numberOf = (key: string): number | undefined => keys.find({ authorization: `Bearer ${key}` })?.index;
  const before = numberOf("b");
  keys.replace(["c", "b"]);
  assert.equal(numberOf("b"), before);
  assert.equal(numberOf("a"), undefined);
  assert.ok(numberOf("c") !== before && numberOf("c") !== 0, "no other key's number");
});

test("TLS files that do not belong together are refused", () => {
  const none = {
    sslKeyfile: undefined,
    sslCertfile: undefined,
    sslCaCerts: undefined,
    sslCiphers: undefined,
  };
  const files = { ...none, sslCertReqs: 0 };
  assert.equal(readTls(files), undefined);
  assert.throws(() => readTls({ ...files, sslCertfile: "/nope" }), {
    code: "invalid_option",
    param: "ssl_keyfile",
  });
  assert.throws(() => readTls({ ...files, sslKeyfile: "/nope", sslCertfile: "/nope" }), {
    code: "invalid_option",
    message: /no such file/,
  });
  assert.throws(() => readTls({ ...files, sslCertReqs: 2 }), { code: "invalid_option" });
  const here = new URL(import.meta.url).pathname;
  assert.throws(() => readTls({ ...files, sslKeyfile: here, sslCertfile: here }), {
    code: "invalid_option",
    message: /no certificate and its key/,
  });
});
