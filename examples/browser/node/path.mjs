// `node:path`, with `/` between names.
export function join(...parts) {
  const path = parts.filter((part) => part !== "").join("/");
  const names = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return (path.startsWith("/") ? "/" : "") + names.join("/");
}

/** The page's folder is the root. */
export function resolve(...parts) {
  const last = parts.findLastIndex((part) => part.startsWith("/"));
  return join("/", ...parts.slice(Math.max(last, 0)));
}

export const dirname = (path) => join(path, "..");
export function basename(path, ending = "") {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name.endsWith(ending) ? name.slice(0, name.length - ending.length) : name;
}
