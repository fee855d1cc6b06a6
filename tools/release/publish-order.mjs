/** Packages after those among them that they need. */
export function inOrder(all) {
  const byName = new Map(all.map((each) => [each.manifest.name, each]));
  const ordered = new Set();
  const visit = (each) => {
    if (ordered.has(each)) return;
    const { dependencies, optionalDependencies } = each.manifest;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const needed = byName.get(name);
      if (needed !== undefined) visit(needed);
    }
    ordered.add(each);
  };
  for (const each of all) visit(each);
  return [...ordered];
}

/** What a version is found by: npm refuses one to try, such as 1.0.0-rc.1, without a tag. */
export function distTagOf(version) {
  return version.includes("-") ? "next" : "latest";
}
