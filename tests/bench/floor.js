// The least that a worker can do: what the runtime itself costs.
export default { fetch: () => new Response('{"ok":true,"network":"preprod"}') };
