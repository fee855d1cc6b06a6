// `node:events`: browsers do not warn of many listeners.
export const setMaxListeners = () => undefined;
