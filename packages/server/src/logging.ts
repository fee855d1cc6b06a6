import { pino, type Logger } from "pino";
import type { ServerConfig } from "./config.js";

/** JSON lines on standard output, or text on standard error; `auto` decides by whether standard output is a terminal. */
export function createLogger({
  logLevel: level,
  logFormat,
}: Pick<ServerConfig, "logLevel" | "logFormat">): Logger {
  const isText = logFormat === "text" || (logFormat === "auto" && process.stdout.isTTY);
  if (!isText) return pino({ level });
  return pino({ level, base: null }, { write: (line) => process.stderr.write(textLine(line)) });
}

/** `12:30:01 warn  message key=value`, and the stack of an error below it. */
export function textLine(json: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const clock = new Date(Number(time)).toISOString().slice(11, 19);
  const name = pino.levels.labels[Number(level)] ?? "info";
  const values = Object.entries(fields).map(([key, value]) => `${key}=${shown(value)}`);
  const { stack = "", message = "" } = (err ?? {}) as { stack?: string; message?: string };
  const trace = stack === "" ? message : stack;
  return `${[clock, name.padEnd(5), msg, ...values].join(" ")}${trace === "" ? "" : `\n  ${trace.replaceAll("\n", "\n  ")}`}\n`;
}

/** Control characters of what clients send do not reach the terminal. */
function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return /[\s"\p{Cc}]/u.test(text) && typeof value === "string" ? JSON.stringify(text) : text;
}
