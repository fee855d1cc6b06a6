import type { FigureBound } from "../case-spec.js";
import type { CaseResult } from "./summarise.js";

/** The lines of a run as text, one per figure and peer. */
export function renderCases(cases: readonly CaseResult[]): string {
  const rows = cases.map((line) => [
    line.name,
    `${number(line.octavo)} ${line.unit}`,
    line.peer === undefined
      ? ""
      : `${line.peerName} ${number(line.peer)}${line.peerSetting === undefined ? "" : ` (${line.peerSetting})`}`,
    line.ratio === undefined ? "" : `${line.ratio.toFixed(2)}x`,
    line.limit?.octavoShare === undefined
      ? ""
      : `${percent(line.limit.octavoShare)} of ${number(line.limit.value)} ${limitUnits[line.limit.name]}` +
        (line.limit.peerShare === undefined ? "" : ` (peer ${percent(line.limit.peerShare)})`),
    line.target === undefined ? "" : describeTarget(line.target),
    line.isMet === undefined ? "" : line.isMet ? "met" : "MISSED",
    line.numRepeated > 0 ? `${line.numRepeated} repeated` : "",
  ]);
  const widths = rows.reduce<number[]>(
    (most, row) => row.map((cell, index) => Math.max(most[index] ?? 0, cell.length)),
    [],
  );
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

const limitUnits = { readGBps: "GB/s", int8Gops: "Gop/s int8", bf16Gflops: "GFLOP/s bf16" } as const;

export function describeTarget({ on, atLeast, atMost }: FigureBound): string {
  const bounds = [
    ...(atLeast === undefined ? [] : [`≥ ${scaled(atLeast, on)}`]),
    ...(atMost === undefined ? [] : [`≤ ${scaled(atMost, on)}`]),
  ];
  return bounds.join(", ");
}

function scaled(value: number, on: FigureBound["on"]): string {
  if (on === "ratio") return `${value}x`;
  return on === "octavo" ? String(value) : percent(value);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)}%`;
}

function number(value: number): string {
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
}
