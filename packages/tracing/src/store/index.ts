export { contentFolder, ContentStore, type ContentStoreOptions } from "./content-store.js";
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
export { type SpanUsage, type UsageGroup, usageGroups, type UsageSpan, type Verdicts } from "./span-usage.js";
