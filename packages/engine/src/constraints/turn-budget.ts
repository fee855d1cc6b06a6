/** Units of work on masks in one turn of the event loop: a few milliseconds, for all sequences together. */
const unitsPerTurn = 4096;

let left = unitsPerTurn;
let isSpent = false;

/** Takes units from this turn's budget; the next turn has it whole again. */
export function takeFromTurn(units: number): void {
  left -= units;
  if (isSpent) return;
  isSpent = true;
  setImmediate(() => {
    left = unitsPerTurn;
    isSpent = false;
  });
}

export function turnHasBudget(): boolean {
  return left > 0;
}
