import { type DatasetFormat, datasetFormats, type OpenDatasetOptions } from "@octavo/evals";
import { type Command, Option } from "commander";
import { parseHeader } from "../options/parse.js";

/** How files of cases are read. */
export interface DatasetFlags {
  readonly format?: DatasetFormat;
  readonly columns?: Readonly<Record<string, string>>;
  readonly delimiter?: string;
  readonly answers?: string;
}

export function datasetFlags(command: Command): Command {
  return command
    .addOption(
      new Option("--format <name>", "format of the cases (default: by what is in the file)").choices(
        datasetFormats,
      ),
    )
    .option("--columns <field=column...>", "of CSV and Parquet: the column of a case's field", parseHeader)
    .option("--delimiter <character>", "of CSV: what separates cells (default: a comma; a tab in .tsv)")
    .option("--answers <file>", "of BFCL: the golds (default: possible_answer/ beside the questions)");
}

export function datasetOptions({ format, columns, delimiter, answers }: DatasetFlags): OpenDatasetOptions {
  return {
    ...(format === undefined ? {} : { format }),
    ...(columns === undefined ? {} : { columns }),
    ...(delimiter === undefined ? {} : { delimiter }),
    ...(answers === undefined ? {} : { answers }),
  };
}
