// What the page is made of: Octavo's own modules, as they are built for Node, found by following imports, and their import map.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { importsOf, resolveImport, textOf } from "../../tools/lib/sources.mjs";
import { filesBelow, root } from "../../tools/lib/steps.mjs";

const folder = relative(root, dirname(fileURLToPath(import.meta.url)));
const entry = join(folder, "page.mjs");

const types = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
};

/** All modules that the page may import, as paths from the root; where the names lead that are no paths; what is imported of Node's modules. */
function pageModules() {
  const imports = {};
  const ofNode = new Map();
  const modules = new Set([entry]);
  // A set's iteration reaches what is added meanwhile.
  for (const path of modules) {
    for (const { target } of importsOf(path)) {
      if (target.startsWith("node:")) continue;
      const found = target.startsWith(".") ? resolveImport(path, target) : packageModule(target);
      if (found === undefined || !existsSync(join(root, found))) continue;
      if (!target.startsWith(".")) imports[target] = `/${found}`;
      modules.add(found);
    }
    for (const [, names, module] of textOf(path).matchAll(/^import \{([^}]*)\} from "(node:[^"]+)"/gm)) {
      imports[module] = `/${module}`;
      const known = ofNode.get(module) ?? ofNode.set(module, new Set()).get(module);
      for (const name of names.split(",")) known.add(name.trim().split(" as ")[0]);
    }
  }
  return { modules, imports, ofNode };
}

/** A module of Node for the page: what `node/` has of it, and the other names that are imported, which refuse to be called. */
async function standIn(module, names) {
  const file = join(folder, "node", `${module.slice("node:".length).replace("/", "-")}.mjs`);
  const own = existsSync(join(root, file)) ? Object.keys(await import(join(root, file))) : [];
  const absent = [...names].filter((name) => name !== "" && !own.includes(name));
  return [
    ...(own.length === 0 ? [] : [`export * from "/${file}";`]),
    ...absent.map(
      (name) => `export function ${name}() { throw new Error("${module} has no ${name} in a browser."); }`,
    ),
  ].join("\n");
}

/** Undefined where the package is not installed, or is CommonJS: what only Node comes to is not missed. */
function packageModule(name) {
  try {
    return relative(root, fileURLToPath(import.meta.resolve(name)));
  } catch {
    return undefined;
  }
}

/** Serves the page with the model of a folder, and nothing else; on this machine alone. Resolves to the server, listening. */
export async function servePage(modelFolder, port = 0) {
  const { modules, imports, ofNode } = pageModules();
  const files = readdirSync(modelFolder).filter((name) => /\.(json|jinja|safetensors)$/.test(name));
  const html = readFileSync(join(root, folder, "index.html"), "utf8").replace(
    "<!-- import map -->",
    `<script type="importmap">${JSON.stringify({ imports })}</script>`,
  );
  const standIns = await Promise.all(
    [...ofNode].map(async ([module, names]) => [`/${module}`, await standIn(module, names)]),
  );
  const nodeFiles = filesBelow(join(folder, "node"), () => true);
  const contents = new Map([
    ["/", () => html],
    ["/model", () => JSON.stringify(files)],
    ...files.map((name) => [`/model/${name}`, () => readFileSync(join(modelFolder, name))]),
    ...standIns.map(([path, text]) => [path, () => text]),
    ...[...modules, ...nodeFiles, join(folder, "page.css")].map((path) => [
      `/${path}`,
      () => readFileSync(join(root, path)),
    ]),
  ]);
  const server = createServer(({ url }, response) => {
    const content = contents.get(url);
    const type =
      url === "/"
        ? types[".html"]
        : (types[extname(url)] ?? (url.startsWith("/node:") ? types[".js"] : "application/octet-stream"));
    response.writeHead(content === undefined ? 404 : 200, {
      "content-type": type,
      // for SharedArrayBuffer
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
    });
    response.end(content?.());
  });
  server.listen(port, "127.0.0.1");
  await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
  return server;
}
