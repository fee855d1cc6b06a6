/** A sequence that may be given a draft. */
export interface DraftCandidate {
  /** The chance that a guess comes true whose predecessors did. */
  readonly rate: number;
  /** Guesses at most. */
  readonly most: number;
  /** Set: guesses to compute. */
  length: number;
}

/** What a step costs. */
export interface DraftCosts {
  /** Milliseconds of the step without guesses. */
  readonly baseMs: number;
  /** Milliseconds of each guess: to make it and to check it. */
  readonly guessMs: number;
  /** Tokens that the step gives without guesses. */
  readonly baseTokens: number;
}

/** Tokens per millisecond must grow by this share, or guessing is left: what is won less surely is soon lost. */
const leastGain = 0.03;
const mostRounds = 4;
const surest = 0.995;

/**
 * Sets how many guesses of each sequence make the step give the most tokens per millisecond. The k-th guess of a sequence
 * comes true with the chance rate^k and costs `guessMs`; it pays as long as the one over the other is more than the whole
 * step gives per millisecond, which depends on the guesses: Dinkelbach's iteration (1967) finds both. All lengths are
 * 0 where too little is to be won.
 */
export function setDraftLengths(candidates: readonly DraftCandidate[], costs: DraftCosts): void {
  const { baseMs, guessMs, baseTokens } = costs;
  const baseSpeed = baseTokens / baseMs;
  let speed = baseSpeed;
  for (let round = 0; round < mostRounds; round += 1) {
    const threshold = guessMs * speed;
    let gained = 0;
    let numGuesses = 0;
    for (const candidate of candidates) {
      const rate = Math.min(candidate.rate, surest);
      const paying = threshold >= 1 || rate <= 0 ? 0 : Math.floor(Math.log(threshold) / Math.log(rate));
      candidate.length = Math.max(0, Math.min(candidate.most, paying));
      gained += (rate * (1 - rate ** candidate.length)) / (1 - rate);
      numGuesses += candidate.length;
    }
    const next = (baseTokens + gained) / (baseMs + guessMs * numGuesses);
    const isSettled = next <= speed * 1.001;
    speed = Math.max(speed, next);
    if (isSettled) break;
  }
  if (speed >= baseSpeed * (1 + leastGain)) return;
  for (const candidate of candidates) candidate.length = 0;
}
