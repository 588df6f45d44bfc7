// A malicious service: each draft is changed in one respect on its way to the client. The client signs none of them.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { bech32 } from "@scure/base";
import { hex, unhex } from "../../../devnet/cardano/hash.ts";
import { type Transaction, transactionOf } from "../../../devnet/cardano/transaction.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Between, balanceOf, between, type Client, clientOf } from "../../e2e/cli/client.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

interface Draft {
  transaction: string;
  payment: {
    accepted: Accepted;
    payload: object;
    extensions: { "cardano-request-commitment": { info: { commitment: { digest: string } } } };
  };
}
interface Accepted {
  payTo: string;
  extra: { terms: { unlockTime: string; externalDisputeUnlockTime: string }; deployment: object };
}

type Change = (draft: Draft) => unknown;
interface Tampered {
  readonly [what: string]: readonly [Change, RegExp];
}

const HELD = 40_000_000n;
/** How a payment's draft ends: no signatures, valid, and the commitment to its request. */
const END = /(?<witnesses>a0)f5(?<metadata>d90103a100a1190192a2617066687474703a3161685820[0-9a-f]{64})$/;
/** A script's address that is no contract. */
const ELSEWHERE = `70${"ab".repeat(28)}`;

let world: World;
let proxy: Between;
let client: Client;
let address: string;
/** The buyer's base address in hex, its payment key's hash, and that address with a thief's key. */
let home: string;
let buyer: string;
let stolen: string;
let thief: Wallet;
let seller: Wallet;
let listing: Listing;

before(async () => {
  world = await startWorld({ escrow: true });
  proxy = await between(world.api);
  thief = world.person("thief", { kind: "enterprise" });
  seller = world.person("seller", { kind: "enterprise" });
  listing = await list(world.api, seller, { modes: ["instant", "protected"], priceLovelace: "6000000" });
  client = clientOf(proxy.url, world.ledger.blockfrost);
  ({ address } = await client.json<{ address: string }>("wallet", "new"));
  home = hex(bytesOf(address));
  buyer = home.slice(2, 58);
  stolen = replaced(home, buyer, thief.paymentKeyHash);
  await world.ledger.faucet(address, HELD);
});
after(async () => {
  client?.stop();
  await proxy?.stop();
  await world?.stop();
});
beforeEach(() => proxy.behave());

const bytesOf = (text: string): Uint8Array =>
  bech32.fromWords(bech32.decode(text as `${string}1${string}`, false).words);
const textOf = (address: string): string =>
  bech32.encode("addr_test", bech32.toWords(unhex(address) ?? new Uint8Array()), false);
const read = (transaction: string): Transaction => transactionOf(unhex(transaction) ?? new Uint8Array());
/** CBOR of a number in four bytes, as amounts and slots of these drafts are, and in eight, as times. */
const four = (number: bigint): string => `1a${number.toString(16).padStart(8, "0")}`;
const eight = (number: bigint): string => `1b${number.toString(16).padStart(16, "0")}`;

/** Replaces what must be there. */
function replaced(text: string, from: string, to: string): string {
  assert.ok(text.includes(from), `${from} is not in ${text}`);
  assert.equal(from.length, to.length);
  return text.replaceAll(from, to);
}

/** Gives the output at this index more, or less. */
function paying(transaction: string, index: number, more: bigint): string {
  const output = read(transaction).body.outputs[index];
  assert.ok(output);
  const before = hex(output.raw);
  const { lovelace } = output.value;
  return replaced(transaction, before, replaced(before, four(lovelace), four(lovelace + more)));
}

const feeing = (transaction: string, more: bigint): string => {
  const { fee } = read(transaction).body;
  return replaced(transaction, `02${four(fee)}`, `02${four(fee + more)}`);
};

const endingLater = (transaction: string, slots: bigint): string => {
  const { validTo } = read(transaction).body;
  assert.ok(validTo);
  return replaced(transaction, `03${four(validTo)}`, `03${four(validTo + slots)}`);
};

/** A change of the transaction alone. */
const edit =
  (change: (transaction: string) => string): Change =>
  (draft) => {
    draft.transaction = change(draft.transaction);
  };
/** A change of the terms alone. */
const accepting =
  (change: object): Change =>
  ({ payment }) =>
    Object.assign(payment.accepted, change);

/** Asks for a draft at this path, which is changed: it is not signed, with these words. */
async function refused(args: string[], path: string, change: Change, says: RegExp): Promise<void> {
  proxy.meddle = (asked, body) => {
    if (!asked.path.endsWith(path)) return undefined;
    const draft = JSON.parse(body) as Draft;
    change(draft);
    assert.notEqual(JSON.stringify(draft), body);
    return JSON.stringify(draft);
  };
  const before = await balanceOf(world, address);
  const { status, out, err } = await client.surety(...args);
  assert.equal(status, 5, err);
  assert.match(err, says);
  assert.match(err, /^surety: not signed: .*Nothing was paid/m);
  assert.equal(out, "");
  assert.ok(!proxy.passed.some(({ headers }) => "payment-signature" in headers), "sent");
  const kept = join(client.folder, "default/pending");
  assert.deepEqual(readdirSync(join(kept, "..")).includes("pending") ? readdirSync(kept) : [], []);
  assert.equal(await balanceOf(world, address), before);
}

const payment: Tampered = {
  "spends another owner's output": [
    edit((tx) => replaced(tx, read(tx).body.inputs[0]?.txHash ?? "", "ab".repeat(32))),
    /spends (ab)+#\d+, which is not this wallet's/,
  ],
  "sends the change elsewhere": [
    edit((tx) => replaced(tx, home, stolen)),
    /sends [\d.]+ tADA to addr_test1\w+, which you did not ask for/,
  ],
  "pays more, out of the change": [
    edit((tx) => paying(paying(tx, 0, 7_000_000n), 1, -7_000_000n)),
    /pays 13 tADA instead of 6 tADA|locks 7 tADA beside the price/,
  ],
  "pays less": [edit((tx) => paying(paying(tx, 0, -1_000_000n), 1, 1_000_000n)), /pays 5 tADA instead of 6 tADA/],
  "burns money as a fee": [edit((tx) => feeing(paying(tx, 1, -2_000_000n), 2_000_000n)), /the fee is 2\.\d+ tADA/],
  "loses money on the way": [
    edit((tx) => paying(tx, 1, -2_000_000n)),
    /the draft's inputs do not equal its outputs and fee/,
  ],
  "can be sent tomorrow": [edit((tx) => endingLater(tx, 86_400n)), /valid for longer than ten minutes/],
  "is of another price": [accepting({ amount: "6000001" }), /pays 6\.000001 tADA instead of 6 tADA/],
  "is of another network": [accepting({ network: "cardano:mainnet" }), /network/],
  "names another payer": [
    ({ payment }) => Object.assign(payment.payload, { nonce: `${"ab".repeat(32)}#0` }),
    /payload\.nonce is not an input/,
  ],
  "is marked as failing": [edit((tx) => tx.replace(END, "$<witnesses>f4$<metadata>")), /a mark that it fails/],
  "names another request": [
    edit((tx) => tx.slice(0, -64) + "ab".repeat(32)),
    /metadata are not the commitment that this program asked for/,
  ],
  "names no request": [edit((tx) => tx.replace(END, "$<witnesses>f5f6")), /metadata are not the commitment/],
  "has more metadata": [
    edit((tx) => tx.replace("d90103a100a1190192", "d90103a100a20701190192")),
    /metadata are not the commitment/,
  ],
  "is sold for another request": [
    ({ payment }) => {
      payment.extensions["cardano-request-commitment"].info.commitment.digest = "ab".repeat(32);
    },
    /a commitment to another request than this one/,
  ],
  "has metadata that were not asked for": [
    ({ payment }) => {
      payment.extensions = {} as Draft["payment"]["extensions"];
    },
    /has metadata, which it does not need/,
  ],
  "is signed by another key": [
    edit((tx) => tx.replace(END, `a100d9010281825820${"ab".repeat(32)}5840${"cd".repeat(64)}f5$<metadata>`)),
    /has signatures/,
  ],
  "is no transaction": [edit((tx) => `${tx}00`), /not well formed/],
};

for (const mode of ["instant", "protected"]) {
  describe(`a payment (${mode}) is not signed that`, () => {
    for (const [what, [change, says]] of Object.entries(payment)) {
      test(what, () => refused(["buy", listing.id, "--mode", mode], "/payment-draft", change, says));
    }
  });
}

test("a payment is not signed that pays a thief instead of the seller", () =>
  refused(
    ["buy", listing.id],
    "/payment-draft",
    edit((tx) => replaced(tx, seller.addressHex, thief.addressHex)),
    /which you did not ask for/,
  ));

const lock: Tampered = {
  "is in another contract": [
    (draft) => {
      const { accepted } = draft.payment;
      draft.transaction = replaced(draft.transaction, hex(bytesOf(accepted.payTo)), ELSEWHERE);
      accepted.payTo = textOf(ELSEWHERE);
    },
    /the money would be locked at addr_test1w/,
  ],
  "is in no contract": [
    (draft) => {
      const { accepted } = draft.payment;
      draft.transaction = replaced(draft.transaction, hex(bytesOf(accepted.payTo)), thief.addressHex);
    },
    /which you did not ask for/,
  ],
  "refunds a thief": [
    edit((tx) => replaced(tx, `581c${buyer}`, `581c${thief.paymentKeyHash}`)),
    /the escrow datum's buyer/,
  ],
  "promises other content": [
    ({ payment }) => Object.assign(payment.accepted.extra.terms, { inputHash: "ab".repeat(32) }),
    /terms do not match the listing/,
  ],
  "is under terms that the seller did not sign": [
    ({ payment }) => {
      const { terms } = payment.accepted.extra;
      terms.externalDisputeUnlockTime = `${BigInt(terms.externalDisputeUnlockTime) + 1n}`;
    },
    /the terms: .*signature/,
  ],
  "has other arbiters": [
    ({ payment }) => Object.assign(payment.accepted.extra.deployment, { cooldownPeriod: "61001" }),
    /the money would be locked at/,
  ],
  "has other deadlines than the terms": [
    (draft) => {
      const unlock = BigInt(draft.payment.accepted.extra.terms.unlockTime);
      draft.transaction = replaced(draft.transaction, eight(unlock), eight(unlock + 86_400_000n));
    },
    /unlock_time is not as the seller signed it/,
  ],
};

describe("a lock is not signed that", () => {
  for (const [what, [change, says]] of Object.entries(lock)) {
    test(what, () => refused(["buy", listing.id, "--protected"], "/payment-draft", change, says));
  }
});

/** The states' constructors in a datum (CBOR tags 121 and on). */
const DISPUTED = "d87c80";
const WITHDRAW_AUTHORIZED = "d87d80";
const action: Tampered = {
  "sends the change elsewhere": [edit((tx) => replaced(tx, home, stolen)), /which you did not ask for/],
  "takes the money out of the escrow": [
    edit((tx) => replaced(tx, hex(bytesOf(escrowIn(tx))), thief.addressHex)),
    /which you did not ask for/,
  ],
  "releases it instead": [
    edit((tx) => replaced(tx, DISPUTED, WITHDRAW_AUTHORIZED)),
    /does not perform SetRefundRequested on the escrow/,
  ],
  "leaves less in the escrow": [
    edit((tx) => paying(paying(tx, 0, -1_000_000n), 1, 1_000_000n)),
    /does not perform SetRefundRequested on the escrow/,
  ],
  "burns money as a fee": [edit((tx) => feeing(paying(tx, 1, -5_000_000n), 5_000_000n)), /the fee is 5\.\d+ tADA/],
  "puts up another owner's collateral": [
    edit((tx) => {
      const [input] = read(tx).body.collateral;
      assert.ok(input);
      const at = tx.lastIndexOf(input.txHash);
      return tx.slice(0, at) + "ab".repeat(32) + tx.slice(at + 64);
    }),
    /spends (ab)+#\d+, which is not this wallet's/,
  ],
};

const escrowIn = (transaction: string): string => {
  const output = read(transaction).body.outputs.find(({ address }) => address.text.startsWith("addr_test1w"));
  assert.ok(output);
  return output.address.text;
};

describe("an action is not signed that", () => {
  let purchase: string;
  before(async () => {
    proxy.behave();
    const told = await client.json<{ purchase: string }>("buy", listing.id, "--protected");
    purchase = told.purchase;
  });
  for (const [what, [change, says]] of Object.entries(action)) {
    test(what, () => refused(["dispute", "--anyway", purchase], "/action-draft", change, says));
  }
  test("unchanged: that one is signed", async () => {
    const told = await client.json<{ txHash: string }>("dispute", "--anyway", purchase);
    assert.equal((await world.ledger.tx(told.txHash))?.state, "block");
  });
});
