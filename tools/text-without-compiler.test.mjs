// What a gateway installs: packs @octavo/text and @octavo/protocol, unpacks them into an empty folder and uses them there, with
// neither the repository's packages nor a compiler in reach.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { root } from "./lib/steps.mjs";

/** What the packages may need from a registry: no native code among it. */
const needed = {
  "@octavo/protocol": ["yaml", "zod"],
  "@octavo/text": ["@octavo/protocol", "zod"],
};
const unwanted = /(?:^|\/)testing\/|\.test\.|\.node$|\.tsbuildinfo$|^package\/(?:src|fixtures)\//;

/** Packs one of our packages into `folder`'s node_modules; returns its files and its package.json. */
function unpack(name, folder) {
  const [, directory] = name.split("/");
  const target = join(folder, "node_modules", name);
  mkdirSync(target, { recursive: true });
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], {
    cwd: join(root, "packages", directory),
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  const [{ filename, files }] = Object.values(JSON.parse(packed));
  execFileSync("tar", ["-xzf", join(folder, filename), "--strip-components=1", "-C", target]);
  return files.map(({ path }) => path);
}

test("@octavo/text works where there is no compiler, no kernels and no engine", () => {
  const folder = mkdtempSync(join(tmpdir(), "octavo-text-"));
  try {
    for (const [name, dependencies] of Object.entries(needed)) {
      const files = unpack(name, folder);
      assert.deepEqual(
        files.filter((path) => unwanted.test(path)),
        [],
        "only what is used at run time is packed",
      );
      assert.ok(files.includes("dist/errors.js") || files.includes("dist/tokenizer/create-tokenizer.js"));
      const manifest = join(folder, "node_modules", name, "package.json");
      const { dependencies: declared = {}, scripts = {} } = JSON.parse(
        execFileSync(process.execPath, ["-p", `JSON.stringify(require(${JSON.stringify(manifest)}))`]),
      );
      assert.deepEqual(Object.keys(declared).toSorted(), dependencies);
      assert.deepEqual(scripts, {}, "nothing runs at installation");
    }
    cpSync(join(root, "node_modules", "zod"), join(folder, "node_modules", "zod"), { recursive: true });
    assert.deepEqual(
      readdirSync(folder, { recursive: true }).filter((path) => path.endsWith(".node")),
      [],
      "no native code",
    );
    cpSync(join(root, "tools", "lib", "use-text.mjs"), join(folder, "use-text.mjs"));
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    const answer = execFileSync(process.execPath, ["use-text.mjs", join(root, "models", "octavo-mini")], {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: folder },
    });
    const found = JSON.parse(answer);
    assert.match(found.prompt, /<\|im_start\|>user\nHi<\|im_end\|>/);
    assert.ok(found.numTokens > 4);
    assert.equal(found.decoded, found.prompt);
    assert.equal(found.hashes.length, Math.floor(found.numTokens / 4));
    assert.ok(found.allowed.includes("{"), "an object may begin");
    assert.ok(!found.allowed.includes("}"), "and nothing else");
    assert.deepEqual(found.calls, [{ name: "add", arguments: '{"a": 1}' }]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
