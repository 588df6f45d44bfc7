// Faults of the chain provider, one at a time at each step of a payment. Afterwards the payment is delivered, paid and
// recorded, or repeating the request makes it so. Content is never delivered unpaid, and nothing is paid twice.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Answer, json, send } from "../../support/helpers/http.ts";
import type { Fault } from "../../support/helpers/ledger.ts";
import { list } from "../../support/helpers/listings.ts";
import {
  assertSettled,
  makeOut,
  type Payment,
  present,
  purchasesOf,
  refusalOf,
  unlockUrl,
} from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

type Symptom = Omit<Fault, "endpoint" | "times">;

/** Faults of a single call. Reads are cancelled after 5 s, submissions after 15 s. */
const READ_SYMPTOMS: Record<string, Symptom> = {
  "is slow": { latencyMs: 700 },
  hangs: { latencyMs: 6_000 },
  "answers 500": { status: 500 },
  "answers 503": { status: 503 },
  "answers 429": { status: 429 },
  "answers 403": { status: 403 },
  "answers 404": { status: 404 },
  "answers 200 with something else": { status: 200 },
  "breaks the connection": { reset: true },
};
const SUBMIT_SYMPTOMS: Record<string, Symptom> = {
  "says yes and forgets": { dropSubmit: true },
  "says yes to nothing": { status: 200 },
  hangs: { latencyMs: 16_000 },
  "is slow": { latencyMs: 700 },
  "answers 400": { status: 400, when: "before" },
  "answers 403": { status: 403 },
  "answers 425": { status: 425 },
  "answers 429": { status: 429 },
  "answers 500": { status: 500 },
  "answers 500 after it took the transaction": { status: 500, when: "after" },
  "answers 400 after it took the transaction": { status: 400, when: "after" },
  "breaks the connection": { reset: true },
  "breaks the connection after it took the transaction": { reset: true, when: "after" },
};
/** Faults that outlast the worker's own retries. */
const STUBBORN = ["answers 503", "answers 429", "breaks the connection"];
const PARAMETERS = "/epochs/latest/parameters";
/** How long what is not counted lasts: longer than reads are repeated, and than it takes to submit again. */
const outageMs = ({ fault }: Trial): number => (fault.endpoint === "/tx/submit" ? 7_000 : 2_500);

interface Trial {
  readonly name: string;
  readonly fault: Fault;
  /** Whether other payments' requests meet the fault too. */
  readonly shared: boolean;
}

interface Case {
  readonly seller: Wallet;
  readonly listing: { readonly id: string; readonly content: string };
  readonly payer: Wallet;
  readonly payment: Payment;
}

/** Each step that asks the provider, by what it asks for. */
function trialsOf({ payment }: { payment: Payment }, step: string): Trial[] {
  const input = `${payment.payload.payload.nonce}`.split("#")[0];
  const endpoint = {
    parameters: PARAMETERS,
    "newest block": "/blocks/latest",
    inputs: `/txs/${input}/utxos`,
    submission: "/tx/submit",
    inclusion: `/txs/${payment.tx}`,
  }[step];
  assert.ok(endpoint);
  const shared = step !== "inputs" && step !== "inclusion";
  const symptoms = step === "submission" ? SUBMIT_SYMPTOMS : READ_SYMPTOMS;
  const trial = (name: string, symptom: Symptom | undefined, times?: number): Trial => ({
    name: `${step} ${name}`,
    fault: { endpoint, ...symptom, ...(times === undefined ? {} : { times }) },
    shared,
  });
  return [
    ...Object.entries(symptoms).map(([name, symptom]) => trial(`${name} once`, symptom, 1)),
    // Reads are repeated three times at once; submissions every 5 s, so theirs is a matter of time.
    ...STUBBORN.filter(() => step !== "submission").map((name) => trial(`${name} three times`, READ_SYMPTOMS[name], 3)),
    ...STUBBORN.map((name) => trial(`${name} for a while`, READ_SYMPTOMS[name])),
  ];
}
const STEPS = ["submission", "inputs", "inclusion", "parameters", "newest block"] as const;
const NO_PAYMENT = { payment: { tx: "", payload: { payload: { nonce: "#" } } } as unknown as Payment };
const ALL = STEPS.flatMap((step) => trialsOf(NO_PAYMENT, step).map((trial, at) => ({ step, at, ...trial })));

describe("a payment is delivered, paid once and recorded once with a provider fault, where", () => {
  let world: World;
  const outcomes = new Map<string, Promise<string>>();
  let consistent = 0;

  before(async () => {
    world = await startWorld({ blockTime: 0.5 });
    const payers = await world.buyers(ALL.length);
    const cases = await Promise.all(
      payers.map(async (payer) => {
        const seller = world.person("seller");
        const listing = await list(world.api, seller);
        return { seller, listing, payer, payment: await makeOut(world, payer, listing) };
      }),
    );
    const planned = ALL.map(({ step, at }, i) => {
      const one = cases[i] as Case;
      return { one, trial: trialsOf(one, step)[at] as Trial };
    });
    // A worker keeps the parameters: it is asked for them once in its life.
    for (const { one, trial } of planned.filter(({ trial }) => trial.fault.endpoint === PARAMETERS)) {
      await world.stack.killWorkers();
      await world.stack.startWorkers();
      const id = await world.ledger.fault(trial.fault);
      const outcome = run(one);
      keep(trial, outcome);
      if (trial.fault.times === undefined) await new Promise((resolve) => setTimeout(resolve, outageMs(trial)));
      else await world.ledger.met(id);
      await world.ledger.clearFault(id);
      await outcome.catch(() => {});
    }
    // Faults of one payment run in parallel; a fault of all is set after the previous one has taken effect.
    for (const { one, trial } of planned.filter(({ trial }) => !trial.shared)) {
      const id = await world.ledger.fault(trial.fault);
      keep(trial, run(one));
      if (trial.fault.times === undefined) setTimeout(() => void world.ledger.clearFault(id), outageMs(trial));
    }
    for (const { one, trial } of planned.filter(({ trial }) => trial.shared && trial.fault.endpoint !== PARAMETERS)) {
      const id = await world.ledger.fault(trial.fault);
      const outcome = run(one);
      keep(trial, outcome);
      if (trial.fault.times === undefined) await new Promise((resolve) => setTimeout(resolve, outageMs(trial)));
      else await world.ledger.met(id);
      await world.ledger.clearFault(id);
      // Reads that are repeated would meet the next fault: let them end.
      if (trial.fault.endpoint !== "/tx/submit") await pastVerification(one, outcome);
    }
  });
  after(async () => {
    console.log(`faults: ${ALL.length} tried, ${consistent} consistent`);
    await world?.stop();
  });

  /** For its test, which may look at it long after it failed. */
  function keep({ name }: Trial, outcome: Promise<string>): void {
    outcome.catch(() => {});
    outcomes.set(name, outcome);
  }

  async function pastVerification({ payment }: Case, outcome: Promise<string>): Promise<void> {
    let over = false;
    const end = () => {
      over = true;
    };
    outcome.then(end, end);
    while (!over && (await world.ledger.tx(payment.tx)) === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  /** Pays and, where that is not the end, sends the same request again. What it answered each time. */
  async function run(one: Case): Promise<string> {
    const { seller, listing, payer, payment } = one;
    const said: string[] = [];
    const started = Date.now();
    for (let attempt = 0; attempt < 10; attempt++) {
      // A node that refused what it had passed on makes the payment one that a stranger may have submitted.
      const proof = said.at(-1)?.includes("payment_public") && (await unlockProof(payer, listing.id));
      const headers = { "payment-signature": payment.header, ...(proof && { "x-service-proof": proof }) };
      const answer = await send(unlockUrl(world, listing), { headers });
      if (answer.status === 200) {
        await assertSettled(world, answer, { listing, payment, payer });
        assert.equal((await purchasesOf(world, seller)).length, 1);
        const onChain = await send(`${world.ledger.blockfrost}/addresses/${seller.address}/transactions`);
        assert.equal(json<unknown[]>(onChain).length, 1);
        assert.equal(refusalOf(await present(world, listing, payment)), "duplicate_settlement");
        return `${[...said, "200"].join(", ")} after ${((Date.now() - started) / 1_000).toFixed(1)} s`;
      }
      said.push(sayingOf(answer, listing.content));
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    throw new Error(`never delivered: ${said.join(", ")}`);
  }

  for (const { name } of ALL) {
    it(name, { timeout: 400_000 }, async (t) => {
      const outcome = outcomes.get(name);
      assert.ok(outcome, "the fault was not tried");
      t.diagnostic(await outcome);
      consistent += 1;
    });
  }
});

/** The only messages that an answer without content may have. */
function sayingOf(answer: Answer, content: string): string {
  assert.equal(answer.text.includes(content), false, "delivered unpaid");
  if (answer.status === 503) {
    assert.ok(Number(answer.headers.get("retry-after")) > 0, "503 without Retry-After");
    return "503";
  }
  const code = refusalOf(answer) ?? "";
  const expected = [
    "settlement_pending",
    "exact_cardano_settlement_definitively_rejected",
    "payment_public",
    // A provider that does not know the output yet.
    "invalid_exact_cardano_payload_nonce_not_on_chain",
  ];
  assert.ok(expected.includes(code), `402 ${code}: ${answer.text}`);
  return `402 ${code}`;
}
