import type { Chart } from "./chart.js";
import { heatmap } from "./heatmap.js";
import { intervalChart } from "./interval-chart.js";
import { seriesChart } from "./series-chart.js";
import { stepsChart } from "./steps-chart.js";

/** HTML of a picture. */
export function drawChart(chart: Chart): string {
  switch (chart.kind) {
    case "heatmap":
      return heatmap(chart);
    case "intervals":
      return intervalChart(chart);
    case "series":
      return seriesChart(chart);
    case "steps":
      return stepsChart(chart);
  }
}
