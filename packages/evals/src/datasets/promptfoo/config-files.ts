import { readFile, realpath, stat } from "node:fs/promises";
import { dirname, extname, isAbsolute, relative, resolve, sep } from "node:path";
import { parse } from "csv-parse/sync";
import { parse as parseYaml } from "yaml";
import { OctavoError, systemProblem } from "@octavo/protocol";
import { invalidFile } from "../place.js";

/** Configurations and what they name are held whole. */
const maxFileBytes = 64 * 1024 * 1024;
const codeExtensions = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".sh", ".exe"]);

/** Files of a configuration: those in its folder and below, whatever paths and links say. Code is never run. */
export class ConfigFiles {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  async readConfig(): Promise<unknown> {
    return this.#parse(this.path, await this.#read(this.path));
  }

  /**
   * What a `file://` reference stands for: JSON, JSON lines, YAML and CSV as values, anything else as text.
   * @param at where the configuration names it, for errors
   */
  async readReference(reference: string, at: string): Promise<unknown> {
    const path = await this.#resolve(reference, at);
    const extension = extname(path).toLowerCase();
    const text = await this.#read(path);
    return [".json", ".jsonl", ".yaml", ".yml", ".csv"].includes(extension) ? this.#parse(path, text) : text;
  }

  /** A reference's text, whatever it holds. */
  async readText(reference: string, at: string): Promise<string> {
    return this.#read(await this.#resolve(reference, at));
  }

  fail(at: string, problem: string, cause?: unknown): OctavoError {
    return new OctavoError("dataset_invalid", `${this.path}: ${at} ${problem}`, { param: at, cause });
  }

  async #resolve(reference: string, at: string): Promise<string> {
    const name = reference.replace(/^file:\/\//, "");
    if (/[*?{]/.test(name)) throw this.fail(at, `is the pattern ${reference}; name the files one by one`);
    const extension = extname(name.replace(/:[\w.]+$/, "")).toLowerCase();
    if (codeExtensions.has(extension)) {
      throw this.fail(
        at,
        `is ${reference}, which is code; code is never run: write what it gives into a file`,
      );
    }
    const folder = await realpath(dirname(this.path));
    let path: string;
    try {
      path = await realpath(resolve(folder, name));
    } catch (error) {
      throw this.fail(at, `is ${reference}, which cannot be read: ${systemProblem(error)}`, error);
    }
    const inside = relative(folder, path);
    if (isAbsolute(inside) || inside === ".." || inside.startsWith(`..${sep}`)) {
      throw this.fail(at, `is ${reference}, which is outside the configuration's folder`);
    }
    return path;
  }

  async #read(path: string): Promise<string> {
    try {
      const { size } = await stat(path);
      if (size > maxFileBytes) throw invalidFile(path, `has ${size} bytes; up to ${maxFileBytes} are read`);
      return await readFile(path, "utf8");
    } catch (error) {
      if (error instanceof OctavoError) throw error;
      throw invalidFile(path, `cannot be read: ${systemProblem(error)}`, error);
    }
  }

  #parse(path: string, text: string): unknown {
    try {
      switch (extname(path).toLowerCase()) {
        case ".json":
          return JSON.parse(text);
        case ".jsonl":
          return text
            .split("\n")
            .filter((line) => line.trim() !== "")
            .map((line): unknown => JSON.parse(line));
        case ".csv":
          return parse(text, { columns: true, bom: true, skip_empty_lines: true });
        default:
          return parseYaml(text);
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : "unreadable";
      throw invalidFile(path, `cannot be parsed: ${reason}`, error);
    }
  }
}
