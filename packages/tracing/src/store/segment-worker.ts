import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { workerData } from "node:worker_threads";
import { parquetWriteFile } from "hyparquet-writer";
import { columns } from "./columns.js";

/** Turns a full segment of lines into Parquet, off the thread that serves. Lines that a crash tore are left out. */
async function convert(stem: string): Promise<void> {
  const cells = columns.map((): unknown[] => []);
  const lines = createInterface({ input: createReadStream(`${stem}.jsonl`), crlfDelay: Infinity });
  for await (const line of lines) {
    const row = parseRow(line);
    if (row === undefined) continue;
    for (const [index, { name }] of columns.entries()) cells[index]?.push(row[name] ?? null);
  }
  // Another process may have opened the store in the same moment and found the same segment.
  const partial = `${stem}.parquet.${randomUUID()}.partial`;
  parquetWriteFile({
    filename: partial,
    columnData: columns.map(({ name, type }, index) => ({
      name,
      data: cells[index] ?? [],
      type: type === "VARCHAR" ? "STRING" : type,
      nullable: true,
    })),
  });
  await rename(partial, `${stem}.parquet`);
  await rm(`${stem}.jsonl`, { force: true });
}

function parseRow(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

const stem: unknown = workerData;
if (typeof stem === "string") await convert(stem);
