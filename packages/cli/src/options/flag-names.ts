import type { OptionRow } from "@octavo/protocol/options";

/** `--foo <n>` and its aliases; of switches also what turns them the other way. */
export function flagNames({ flag = "", aliases = [] }: OptionRow): readonly string[] {
  const names = [flag.split(" ")[0] ?? "", ...aliases].filter((name) => name !== "");
  if (flag.includes("<")) return names;
  return names.flatMap((name) => {
    const plain = name.replace("[no-]", "");
    return [plain, oppositeOf(plain)];
  });
}

/** `--no-x` of `--x`, and back. */
export function oppositeOf(name: string): string {
  return name.startsWith("--no-") ? `--${name.slice("--no-".length)}` : `--no-${name.slice("--".length)}`;
}
