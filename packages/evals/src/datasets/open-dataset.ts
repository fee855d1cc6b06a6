import { definedFields, OctavoError } from "@octavo/protocol";
import { isCaseField, knownCaseFields } from "./case-record.js";
import { csvDataset } from "./csv.js";
import type { Dataset } from "./dataset.js";
import { type DatasetFormat, detectFormat } from "./dataset-format.js";
import { spanDataset } from "../spans/span-dataset.js";
import { bfclDataset } from "./formats/bfcl.js";
import { hleDataset } from "./formats/hle.js";
import { longBenchDataset } from "./formats/longbench-v2.js";
import { mmluProDataset } from "./formats/mmlu-pro.js";
import { jsonDataset } from "./json.js";
import { limitDataset } from "./limit-dataset.js";
import { jsonlDataset } from "./jsonl.js";
import { parquetDataset } from "./parquet.js";

/** How a dataset is opened, and how many of its cases are taken. */
export interface OpenDatasetOptions {
  /** Default: what the file is found to be. */
  readonly format?: DatasetFormat;
  /** The column of a case's field, for CSV and Parquet. */
  readonly columns?: Readonly<Record<string, string>>;
  /** For CSV. */
  readonly delimiter?: string;
  /** The file of golds, for BFCL. */
  readonly answers?: string;
  /** The benchmark's own prompt, for MMLU-Pro, LongBench v2 and HLE. */
  readonly prompt?: string;
  /** The file of worked examples, for MMLU-Pro with `prompt`. */
  readonly examples?: string;
  /** Recorded spans only: take those of this owner, such as `tenant acme`, `key 0` or `anyone`. */
  readonly owner?: string;
  /** A sample of so many cases, each kind with its share. */
  readonly limit?: number;
  /** Seed of the sample. Default 1. */
  readonly seed?: number;
}

/** Which formats take what beside the file. */
const formatsThatTake = {
  columns: ["csv", "parquet"],
  delimiter: ["csv"],
  answers: ["bfcl"],
  prompt: ["mmlu-pro", "longbench-v2", "hle"],
  examples: ["mmlu-pro"],
  owner: ["spans"],
} as const satisfies Record<string, readonly DatasetFormat[]>;

/**
 * A file of cases as a dataset. A promptfoo configuration is more than cases: `importPromptfoo` reads it.
 * @throws OctavoError `dataset_invalid`, `invalid_option`
 */
export async function openDataset(path: string, options: OpenDatasetOptions = {}): Promise<Dataset> {
  const format = options.format ?? (await detectFormat(path));
  checkOptions(path, format, options);
  const dataset = await openFormat(path, format, options);
  return options.limit === undefined ? dataset : limitDataset(dataset, options.limit, options.seed);
}

/** Options that the format does not have are refused, never ignored. */
function checkOptions(path: string, format: DatasetFormat, options: OpenDatasetOptions): void {
  for (const [option, formats] of Object.entries(formatsThatTake)) {
    const isGiven = options[option as keyof typeof formatsThatTake] !== undefined;
    if (isGiven && !(formats as readonly DatasetFormat[]).includes(format))
      throw new OctavoError(
        "invalid_option",
        `${option}: ${path} is read as ${format}, which has none; only ${formats.join(" and ")} may have it`,
        { param: option },
      );
  }
  const stranger = Object.keys(options.columns ?? {}).find((field) => !isCaseField(field));
  if (stranger !== undefined)
    throw new OctavoError(
      "invalid_option",
      `columns: a case has no field ${JSON.stringify(stranger.slice(0, 64))}; it has ${knownCaseFields.join(", ")}. Columns of other names become metadata as they are.`,
      { param: "columns" },
    );
  if (options.examples !== undefined && options.prompt === undefined)
    throw new OctavoError(
      "invalid_option",
      "examples: they go with the benchmark's own prompt: give prompt too",
      {
        param: "examples",
      },
    );
  const { delimiter } = options;
  if (delimiter !== undefined && !/^[^"\r\n]$/u.test(delimiter))
    throw new OctavoError(
      "invalid_option",
      `delimiter: expected one character, no quote and no line end, got ${JSON.stringify(delimiter.slice(0, 16))}`,
      { param: "delimiter" },
    );
}

function openFormat(
  path: string,
  format: DatasetFormat,
  { columns, delimiter, answers, prompt, examples, owner }: OpenDatasetOptions,
): Dataset | Promise<Dataset> {
  switch (format) {
    case "jsonl":
      return jsonlDataset(path);
    case "json":
      return jsonDataset(path);
    case "csv":
      return csvDataset(path, {
        ...definedFields({ columns, delimiter }),
      });
    case "parquet":
      return parquetDataset(path, columns === undefined ? {} : { columns });
    case "mmlu-pro":
      return mmluProDataset(path, definedFields({ prompt, examples }));
    case "longbench-v2":
      return longBenchDataset(path, definedFields({ prompt }));
    case "hle":
      return hleDataset(path, definedFields({ prompt }));
    case "bfcl":
      return bfclDataset(path, answers === undefined ? {} : { answers });
    case "spans":
      return spanDataset(path, owner === undefined ? {} : { owner });
    case "promptfoo":
      throw new OctavoError(
        "dataset_invalid",
        `${path} is a promptfoo configuration, which has assertions too: import it with importPromptfoo`,
      );
  }
}
