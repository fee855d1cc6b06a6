// `node:url`.
export const fileURLToPath = (url) => new URL(url).pathname;
