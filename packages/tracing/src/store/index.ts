export { defaultStoreFolder } from "./default-folder.js";
export { SpanStore, type SpanStoreOptions } from "./span-store.js";
export {
  type Percentiles,
  type Row,
  type SpanFilter,
  type SpanGroup,
  spanGroups,
  SpanQuery,
  type SpanStats,
} from "./span-query.js";
