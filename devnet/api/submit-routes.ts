/** /tx/submit and /utils/txs/evaluate. */
import type { FastifyInstance, FastifyRequest } from "fastify";

import { CborError } from "../cardano/cbor.ts";
import { unhex } from "../cardano/hash.ts";
import { refOf, type Transaction, transactionOf } from "../cardano/transaction.ts";
import { evaluate, type Unspent } from "../ledger/emulator.ts";
import { additionalUtxos } from "./additional-utxos.ts";
import type { Context } from "./context.ts";
import { ApiError } from "./errors.ts";

export function submitRoutes(app: FastifyInstance, { ledger, faults }: Context): void {
  app.post("/tx/submit", (request, reply) => {
    if (!/^application\/cbor\b/.test(request.headers["content-type"] ?? "")) {
      throw new ApiError(400, "Invalid Content-Type. Set it to application/cbor and send the transaction's bytes.");
    }
    const result = ledger.submit(bytesOf(request));
    if (!result.accepted) throw new ApiError(400, result.message);
    if (faults.of(request).some(({ dropSubmit }) => dropSubmit))
      ledger.forget(result.record, "a fault dropped the submission");
    // Fastify would send a string as plain text; the documentation has a JSON string.
    reply.type("application/json; charset=utf-8");
    return JSON.stringify(result.record.tx.hash);
  });

  const answer = (cbor: Uint8Array, additional: readonly Unspent[]) => {
    const tx = readable(cbor);
    const known = new Set(additional.map(({ input }) => refOf(input)));
    const { inputs, referenceInputs, collateral } = tx.body;
    const found = [...inputs, ...referenceInputs, ...collateral].flatMap((input): Unspent[] => {
      const output = known.has(refOf(input)) ? undefined : ledger.pool.resolve(input);
      return output ? [{ input, output: output.raw }] : [];
    });
    const missing = [...inputs, ...referenceInputs].filter(
      (input) => !known.has(refOf(input)) && ledger.pool.resolve(input) === undefined,
    );
    if (missing.length > 0) {
      const unknown = missing.map(({ txHash, index }) => ({ txId: txHash, index }));
      return wrapped({ EvaluationFailure: { UnknownInputs: unknown } });
    }
    return wrapped(evaluationOf(cbor, tx, [...found, ...additional]));
  };

  app.post("/utils/txs/evaluate", (request) => answer(textOrBytes(bytesOf(request)), []));
  app.post("/utils/txs/evaluate/utxos", (request) => {
    const body = request.body;
    if (typeof body !== "object" || body === null || !("cbor" in body) || typeof body.cbor !== "string") {
      throw new ApiError(400, "body must have required property 'cbor'");
    }
    return answer(textOrBytes(Buffer.from(body.cbor)), additionalUtxos(body as { [name: string]: unknown }));
  });
}

function bytesOf(request: FastifyRequest): Uint8Array {
  if (Buffer.isBuffer(request.body)) return new Uint8Array(request.body);
  throw new ApiError(400, "body must be bytes");
}

/** Decodes a transaction from base16 or base64 text, or takes the bytes themselves. */
function textOrBytes(body: Uint8Array): Uint8Array {
  const text = Buffer.from(body).toString("latin1").trim();
  return unhex(text) ?? (/^[A-Za-z0-9+/]+={0,2}$/.test(text) ? new Uint8Array(Buffer.from(text, "base64")) : body);
}

function readable(cbor: Uint8Array): Transaction {
  try {
    return transactionOf(cbor);
  } catch (error) {
    if (!(error instanceof CborError || error instanceof TypeError)) throw error;
    throw new ApiError(400, `Invalid request: failed to decode payload from base64 or base16. ${error.message}`);
  }
}

/** Ogmios v5's envelope. */
const wrapped = (result: object) => ({
  type: "jsonwsp/response",
  version: "1.0",
  servicename: "ogmios",
  methodname: "EvaluateTx",
  result,
  reflection: { id: crypto.randomUUID() },
});

function evaluationOf(cbor: Uint8Array, tx: Transaction, unspent: readonly Unspent[]): object {
  if (tx.redeemers.length === 0) return { EvaluationResult: {} };
  const result = evaluate(cbor, unspent);
  if ("failure" in result) {
    const { purpose, index } = tx.redeemers[0] ?? { purpose: "spend", index: 0 };
    if (!result.isScript) return { EvaluationFailure: { CannotCreateEvaluationContext: { reason: result.failure } } };
    const validatorFailed = { validatorFailed: { error: result.failure, traces: result.logs } };
    return { EvaluationFailure: { ScriptFailures: { [`${purpose}:${index}`]: [validatorFailed] } } };
  }
  const budgets = result.budgets.map(({ purpose, index, memory, steps }) => [
    `${purpose}:${index}`,
    { memory: Number(memory), steps: Number(steps) },
  ]);
  return { EvaluationResult: Object.fromEntries(budgets) };
}
