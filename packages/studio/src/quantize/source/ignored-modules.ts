import { invalidOption } from "../options.js";

/**
 * Whether a module is left as it is. A pattern is a module's full name, its last parts ("lm_head", "mlp.down_proj"), the folder of
 * several ("model.layers.0"), or a regular expression over the full name after "re:", as compressed-tensors writes them.
 */
export function ignores(patterns: readonly string[]): (module: string) => boolean {
  const tests = patterns.map((pattern) => {
    if (!pattern.startsWith("re:")) {
      return (module: string): boolean =>
        module === pattern || module.endsWith(`.${pattern}`) || module.startsWith(`${pattern}.`);
    }
    const expression = compile(pattern.slice("re:".length));
    return (module: string): boolean => expression.test(module);
  });
  return (module) => tests.some((test) => test(module));
}

function compile(source: string): RegExp {
  try {
    return new RegExp(`^(?:${source})`);
  } catch {
    throw invalidOption(
      "ignore",
      `has the invalid regular expression ${JSON.stringify(source.slice(0, 200))}`,
    );
  }
}
