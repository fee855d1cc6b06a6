import { OctavoError } from "@octavo/protocol";

/** Tokens of a text, as the model under test counts them. */
export type CountTokens = (text: string) => number | Promise<number>;

interface Fitted {
  readonly size: number;
  readonly prompt: string;
  readonly promptTokens: number;
}

interface Growing {
  readonly minSize: number;
  readonly maxSize: number;
  prompt(size: number): string;
}

/**
 * The largest size whose prompt has at most `budgetTokens`: doubling or halving from a guess, then bisection. The prompt
 * given back was counted.
 * @throws OctavoError `invalid_option` when the smallest does not fit
 */
export async function fitLength(
  draft: Growing,
  budgetTokens: number,
  countTokens: CountTokens,
  guess: number,
): Promise<Fitted> {
  const { minSize, maxSize } = draft;
  const measure = async (size: number): Promise<Fitted> => {
    const prompt = draft.prompt(size);
    return { size, prompt, promptTokens: await countTokens(prompt) };
  };
  let best: Fitted | undefined;
  let tooLarge: number | undefined;
  let size = Math.min(Math.max(guess, minSize), maxSize);
  let step = Math.max(1, size >> 5);
  for (;;) {
    const tried = await measure(size);
    if (tried.promptTokens <= budgetTokens) {
      best = tried;
    } else if (size <= minSize) {
      throw new OctavoError(
        "invalid_option",
        `lengthTokens: the smallest prompt has ${tried.promptTokens} tokens, but only ${budgetTokens} are left for it; ask for a greater length`,
        { param: "lengthTokens" },
      );
    } else {
      tooLarge = size;
    }
    if (best === undefined) {
      size = Math.max(minSize, size - step);
      step *= 2;
    } else if (tooLarge === undefined) {
      if (best.size >= maxSize) return best;
      size = Math.min(maxSize, best.size + step);
      step *= 2;
    } else {
      if (best.size + 1 >= tooLarge) return best;
      size = Math.floor((best.size + tooLarge) / 2);
    }
  }
}
