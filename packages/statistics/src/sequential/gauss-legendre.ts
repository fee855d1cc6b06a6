const order = 12;

/** Nodes and weights on [-1, 1]: roots of the Legendre polynomial by Newton's method. */
function rule(): { nodes: number[]; weights: number[] } {
  const nodes: number[] = [];
  const weights: number[] = [];
  for (let i = 0; i < order; i++) {
    let x = Math.cos((Math.PI * (i + 0.75)) / (order + 0.5));
    let slope = 1;
    for (let iteration = 0; iteration < 100; iteration++) {
      let previous = 1;
      let value = x;
      for (let degree = 2; degree <= order; degree++) {
        [previous, value] = [value, ((2 * degree - 1) * x * value - (degree - 1) * previous) / degree];
      }
      slope = (order * (x * value - previous)) / (x * x - 1);
      const change = value / slope;
      x -= change;
      if (Math.abs(change) < 1e-15) break;
    }
    nodes.push(x);
    weights.push(2 / ((1 - x * x) * slope * slope));
  }
  return { nodes, weights };
}

const base = rule();

/** Composite Gauss-Legendre quadrature over [low, high] in panels of equal width, 12 points each. */
export function gaussLegendre(
  low: number,
  high: number,
  panels: number,
): { nodes: Float64Array; weights: Float64Array } {
  const half = (high - low) / (2 * panels);
  const nodes = new Float64Array(panels * order);
  const weights = new Float64Array(panels * order);
  for (let panel = 0; panel < panels; panel++) {
    const middle = low + (2 * panel + 1) * half;
    for (let i = 0; i < order; i++) {
      nodes[panel * order + i] = middle + half * base.nodes[i]!;
      weights[panel * order + i] = half * base.weights[i]!;
    }
  }
  return { nodes, weights };
}
