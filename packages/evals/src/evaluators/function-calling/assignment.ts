/**
 * Pairs rows with columns so that the sum of their weights is greatest (the Hungarian method with potentials, Kuhn 1955 and
 * Jonker and Volgenant 1987; cubic). Gives for each row its column, or undefined where there are fewer columns than rows.
 */
export function bestAssignment(weights: readonly (readonly number[])[]): (number | undefined)[] {
  const numRows = weights.length;
  const numColumns = weights[0]?.length ?? 0;
  const size = Math.max(numRows, numColumns);
  const cost = (row: number, column: number): number => -(weights[row]?.[column] ?? 0);

  // one-based, with column 0 as the root of each augmenting path
  const rowPotential = new Float64Array(size + 1);
  const columnPotential = new Float64Array(size + 1);
  const rowOf = new Int32Array(size + 1);
  for (let row = 1; row <= size; row++) {
    rowOf[0] = row;
    const slack = new Float64Array(size + 1).fill(Infinity);
    const previous = new Int32Array(size + 1);
    const isReached = new Uint8Array(size + 1);
    let column = 0;
    do {
      isReached[column] = 1;
      const from = rowOf[column]!;
      let least = Infinity;
      let next = 0;
      for (let j = 1; j <= size; j++) {
        if (isReached[j] === 1) continue;
        const reduced = cost(from - 1, j - 1) - rowPotential[from]! - columnPotential[j]!;
        if (reduced < slack[j]!) {
          slack[j] = reduced;
          previous[j] = column;
        }
        if (slack[j]! < least) {
          least = slack[j]!;
          next = j;
        }
      }
      for (let j = 0; j <= size; j++) {
        if (isReached[j] === 1) {
          rowPotential[rowOf[j]!]! += least;
          columnPotential[j]! -= least;
        } else slack[j]! -= least;
      }
      column = next;
    } while (rowOf[column] !== 0);
    while (column !== 0) {
      rowOf[column] = rowOf[previous[column]!]!;
      column = previous[column]!;
    }
  }

  const columns: (number | undefined)[] = Array.from({ length: numRows }, () => undefined);
  for (let column = 1; column <= numColumns; column++) {
    const row = rowOf[column]! - 1;
    if (row < numRows) columns[row] = column - 1;
  }
  return columns;
}

/** As `bestAssignment`, of pairs that keep the order of both sides. */
export function bestAlignment(weights: readonly (readonly number[])[]): (number | undefined)[] {
  const numRows = weights.length;
  const numColumns = weights[0]?.length ?? 0;
  // best[i][j]: of the rows from i and the columns from j on
  const best = Array.from({ length: numRows + 1 }, () => new Float64Array(numColumns + 1));
  for (let i = numRows - 1; i >= 0; i--) {
    for (let j = numColumns - 1; j >= 0; j--) {
      const paired = weights[i]![j]! + best[i + 1]![j + 1]!;
      best[i]![j] = Math.max(paired, best[i + 1]![j]!, best[i]![j + 1]!);
    }
  }
  const columns: (number | undefined)[] = Array.from({ length: numRows }, () => undefined);
  for (let i = 0, j = 0; i < numRows && j < numColumns;) {
    if (best[i]![j] === weights[i]![j]! + best[i + 1]![j + 1]!) columns[i++] = j++;
    else if (best[i]![j] === best[i + 1]![j]) i++;
    else j++;
  }
  return columns;
}
