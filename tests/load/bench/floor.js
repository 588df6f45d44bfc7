// The minimal worker, to measure the cost of the runtime.
export default { fetch: () => new Response('{"ok":true,"network":"preprod"}') };
