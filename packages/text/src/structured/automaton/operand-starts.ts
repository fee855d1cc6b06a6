import type { OperandStarts, Term } from "./term.js";

/** With fewer operands than this all of them are tried. */
const enoughOperands = 8;

/** Operands of an `or` that may continue with a byte of a class; of many, most cannot. */
export function operandsAt(term: Term, byteClass: number): readonly Term[] {
  if (term.items.length < enoughOperands) return term.items;
  const { byClass, others } = (term.starts ??= operandStarts(term.items));
  const here = byClass.get(byteClass);
  return here === undefined ? others : [...here, ...others];
}

function operandStarts(items: readonly Term[]): OperandStarts {
  const byClass = new Map<number, Term[]>();
  const others: Term[] = [];
  for (const item of items) {
    let first = item;
    while ((first.kind === "concat" || first.kind === "frame") && !first.left!.nullable) first = first.left!;
    if (first.kind !== "text") others.push(item);
    else {
      const group = byClass.get(first.min);
      if (group === undefined) byClass.set(first.min, [item]);
      else group.push(item);
    }
  }
  return { byClass, others };
}
