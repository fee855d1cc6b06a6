// `node:crypto`: random numbers.
export const randomUUID = () => crypto.randomUUID();
export const randomFillSync = (array) => crypto.getRandomValues(array);
export const randomBytes = (length) => randomFillSync(Buffer.alloc(length));
