import type { Figure } from "../../checks/check.js";
import { heatmap } from "./heatmap.js";
import { intervalChart } from "./interval-chart.js";
import { seriesChart } from "./series-chart.js";
import { stepsChart } from "./steps-chart.js";

/** HTML of a check's picture. */
export function drawFigure(figure: Figure): string {
  switch (figure.kind) {
    case "heatmap":
      return heatmap(figure);
    case "intervals":
      return intervalChart(figure);
    case "series":
      return seriesChart(figure);
    case "steps":
      return stepsChart(figure);
  }
}
