export * from "./dataset.js";
export { type ByteSource, fileSource } from "./byte-source.js";
export { type CsvOptions, csvDataset } from "./csv.js";
export { jsonlDataset } from "./jsonl.js";
export { type ParquetOptions, parquetDataset } from "./parquet.js";
