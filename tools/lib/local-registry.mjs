// A registry on this machine that offers packed tarballs, so that npm resolves them as it would published ones.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename } from "node:path";

/** Serves `tarballs` (path by package name) and nothing else; `close()` ends it. */
export async function serveTarballs(tarballs) {
  const server = createServer((request, response) => {
    const name = decodeURIComponent(request.url.slice(1).split("?")[0]);
    const file = Object.values(tarballs).find((path) => basename(path) === name);
    if (file !== undefined) {
      createReadStream(file).pipe(response);
      return;
    }
    const path = tarballs[name];
    response.writeHead(path === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(path === undefined ? { error: "not found" } : packument(path, origin())));
  });
  const origin = () => `http://127.0.0.1:${server.address().port}`;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `${origin()}/`, close: () => server.close() };
}

export function readTarballManifest(path) {
  return JSON.parse(execFileSync("tar", ["-xzOf", path, "package/package.json"], { encoding: "utf8" }));
}

/** What a registry says of a package that has one version. */
function packument(path, origin) {
  const manifest = JSON.parse(
    execFileSync("tar", ["-xzOf", path, "package/package.json"], { encoding: "utf8" }),
  );
  const integrity = `sha512-${createHash("sha512").update(readFileSync(path)).digest("base64")}`;
  const dist = { tarball: `${origin}/${basename(path)}`, integrity };
  return {
    name: manifest.name,
    "dist-tags": { latest: manifest.version },
    versions: { [manifest.version]: { ...manifest, dist } },
  };
}
