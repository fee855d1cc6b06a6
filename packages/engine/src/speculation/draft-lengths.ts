/** A sequence that may be given a draft. */
export interface DraftCandidate {
  /** The chance that a draft token is accepted if those before it were. */
  readonly rate: number;
  readonly maxTokens: number;
  /** Set by `setDraftLengths`: draft tokens to verify. */
  length: number;
}

/** What a step costs and gives without draft tokens, and what each of them adds. */
export interface DraftCosts {
  readonly baseMs: number;
  /** Cost of each draft token, to draft and to verify. */
  readonly draftTokenMs: number;
  readonly baseTokens: number;
}

/** Tokens per millisecond must grow by this share, or nothing is drafted: smaller gains are lost in noise. */
const minGain = 0.03;
const maxRounds = 4;
const maxRate = 0.995;

/**
 * Sets the draft lengths that give the most tokens per millisecond. The k-th draft token of a sequence is accepted with
 * probability rate^k and costs `draftTokenMs`; it pays as long as probability over cost exceeds the step's tokens per
 * millisecond, which in turn depends on the lengths: Dinkelbach's iteration (1967) finds both. All lengths are 0 where the gain
 * is too small.
 */
export function setDraftLengths(candidates: readonly DraftCandidate[], costs: DraftCosts): void {
  const { baseMs, draftTokenMs, baseTokens } = costs;
  const baseSpeed = baseTokens / baseMs;
  let speed = baseSpeed;
  for (let round = 0; round < maxRounds; round += 1) {
    const threshold = draftTokenMs * speed;
    let gained = 0;
    let numDraftTokens = 0;
    for (const candidate of candidates) {
      const rate = Math.min(candidate.rate, maxRate);
      const paying = threshold >= 1 || rate <= 0 ? 0 : Math.floor(Math.log(threshold) / Math.log(rate));
      candidate.length = Math.max(0, Math.min(candidate.maxTokens, paying));
      gained += (rate * (1 - rate ** candidate.length)) / (1 - rate);
      numDraftTokens += candidate.length;
    }
    const next = (baseTokens + gained) / (baseMs + draftTokenMs * numDraftTokens);
    const isSettled = next <= speed * 1.001;
    speed = Math.max(speed, next);
    if (isSettled) break;
  }
  if (speed >= baseSpeed * (1 + minGain)) return;
  for (const candidate of candidates) candidate.length = 0;
}
