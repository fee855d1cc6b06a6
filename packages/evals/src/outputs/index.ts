export { renderJunit } from "./junit.js";
export { renderMarkdown } from "./markdown.js";
