// Protected sales to outside wallets: a stock x402 client locks into the escrow, and the service shows the state of the
// chain.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ExactCardanoScheme, networkTime } from "../../../examples/js/x402-exact-cardano/index.js";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import { sha256Hex, unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { decode, json, post, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

interface Terms {
  readonly accepts: readonly Entry[];
  readonly error: string;
}
interface Entry {
  readonly scheme: "exact";
  readonly network: "cardano:preprod";
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Record<string, unknown> & {
    readonly assetTransferMethod: string;
    readonly inputCommitment?: { readonly digest: string };
    readonly terms?: Record<string, string>;
  };
}
interface Purchase {
  readonly id: string;
  readonly mode: string;
  readonly status: string;
  readonly buyerAddress: string;
  readonly events: readonly { status: string; txHash: string; at: string }[];
  readonly escrow: {
    readonly address: string;
    readonly inputHash: string;
    readonly resultHash?: string;
    readonly identifierFromPurchaser: string;
    readonly deadlines: Record<string, string>;
  };
}

let world: World;
before(async () => {
  world = await startWorld({ escrow: true });
});
after(() => world.stop());

const method = () => payEscrow({ approve: () => true, trust: () => true, blockfrost: world.ledger.blockfrost });
const unlockOf = (listing: { id: string }): string => `${world.api}/listings/${listing.id}/unlock`;
const offered = async (changes: Parameters<typeof list>[2] = {}) =>
  list(world.api, world.person("seller"), { priceLovelace: "5000000", modes: ["instant", "protected"], ...changes });
const termsOf = async (listing: { id: string }): Promise<Terms> =>
  decode((await send(unlockOf(listing))).headers.get("payment-required")) as Terms;
const quoteIn = (terms: Terms): Entry => {
  const quote = terms.accepts.find((entry) => entry.extra.assetTransferMethod === "escrow");
  assert.ok(quote, "an escrow entry");
  return quote;
};

/** The header by which a wallet pays under an entry, made by the buyer's own code. */
async function header(wallet: Wallet, accepted: Entry): Promise<string> {
  const scheme = new ExactCardanoScheme({ wallet, now: networkTime(world.ledger.blockfrost) }, { escrow: method() });
  const { payload } = await scheme.createPaymentPayload(2, accepted);
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString("base64");
}
const pay = (listing: { id: string }, signature: string) =>
  send(unlockOf(listing), { headers: { "payment-signature": signature } });
const errorIn = (answer: Awaited<ReturnType<typeof send>>): string => {
  assert.equal(answer.status, 402, answer.text);
  return (decode(answer.headers.get("payment-required")) as Terms).error;
};

test("a stock x402 client locks 5 tADA, gets the content, and the purchase shows its result", async () => {
  const listing = await offered();
  const quote = quoteIn(await termsOf(listing));
  assert.equal(quote.amount, "5000000");
  const buyer = await world.buyer();
  const client = payingFetch(buyer, {
    blockfrost: world.ledger.blockfrost,
    method: "escrow",
    methods: { escrow: method() },
  });
  const paid = await client.fetch(unlockOf(listing));
  assert.equal(paid.status, 200);
  assert.equal(await paid.text(), listing.content);
  const { transaction } = decode(paid.headers.get("payment-response")) as { transaction: string };

  const purchase = json<Purchase>(await send(`${world.api}/purchases/${transaction}`));
  assert.equal(purchase.mode, "protected");
  assert.equal(purchase.status, "ResultSubmitted");
  assert.equal(purchase.buyerAddress, buyer.address);
  assert.deepEqual(
    purchase.events.map(({ status }) => status),
    ["FundsLocked", "ResultSubmitted"],
  );
  assert.equal(purchase.events[0]?.txHash, transaction);
  assert.equal(purchase.escrow.address, quote.payTo);
  assert.equal(purchase.escrow.identifierFromPurchaser, transaction);
  assert.equal(purchase.escrow.inputHash, quote.extra.inputCommitment?.digest);
  assert.equal(purchase.escrow.resultHash, sha256Hex(`${transaction};${listing.content}`));
  const taken = client.payloads.at(-1)?.accepted as unknown as Entry;
  assert.deepEqual(purchase.escrow.deadlines, {
    payBy: taken.extra.terms?.payByTime,
    submitResult: taken.extra.terms?.submitResultTime,
    unlock: taken.extra.terms?.unlockTime,
    externalDisputeUnlock: taken.extra.terms?.externalDisputeUnlockTime,
  });
  const minutes = (name: string) => (Number(purchase.escrow.deadlines[name]) - Date.now()) / 60_000;
  assert.ok(minutes("submitResult") > 15 && minutes("unlock") > 30 && minutes("externalDisputeUnlock") > 45);

  const again = await send(unlockOf(listing), { headers: { "x-service-proof": await unlockProof(buyer, listing.id) } });
  assert.equal(again.text, listing.content);
  assert.equal(again.headers.get("x-service-purchase"), transaction);
});

test("the quote commits to the listing and its content, and no two quotes are the same", async () => {
  const listing = await offered();
  const [one, two] = [quoteIn(await termsOf(listing)), quoteIn(await termsOf(listing))];
  const part = (one.extra.inputCommitment as unknown as { parts: { content: unknown; digest: string }[] }).parts[0];
  assert.deepEqual(part?.content, { contentHash: listing.contentHash, listingId: listing.id });
  assert.equal(
    part?.digest,
    sha256Hex(JSON.stringify({ contentHash: listing.contentHash, listingId: listing.id })),
    "JCS of two ASCII members in order is JSON without spaces",
  );
  assert.notEqual(one.extra.terms?.sellerNonce, two.extra.terms?.sellerNonce);
});

test("a second lock under the same terms is refused and spends nothing", async () => {
  const listing = await offered();
  const quote = quoteIn(await termsOf(listing));
  const [first, second] = [await world.buyer(), await world.buyer()];
  const [one, two] = [await header(first, quote), await header(second, quote)];
  assert.equal((await pay(listing, one)).status, 200);
  assert.equal(errorIn(await pay(listing, two)), "duplicate_settlement");
  const utxos = json<unknown[]>(await send(`${world.ledger.blockfrost}/addresses/${second.address}/utxos`));
  assert.equal(utxos.length, 1, "the second buyer still has the one output");
});

test("two locks under the same terms at once: one is delivered, one is refused", async () => {
  const listing = await offered();
  const quote = quoteIn(await termsOf(listing));
  const buyers = [await world.buyer(), await world.buyer(), await world.buyer()];
  const headers = await Promise.all(buyers.map((buyer) => header(buyer, quote)));
  const statuses = (await Promise.all(headers.map((one) => pay(listing, one)))).map(({ status }) => status);
  assert.deepEqual(statuses.sort(), [200, 402, 402]);
});

test("a quote with any signed field changed is refused", async () => {
  const listing = await offered();
  const dearer = await offered({ priceLovelace: "9000000" });
  const quote = quoteIn(await termsOf(listing));
  const terms = quote.extra.terms as Record<string, string>;
  const later = String(Number(terms.unlockTime) + 1);
  const changed: Record<string, Entry> = {
    price: { ...quote, amount: "1000000" },
    deadline: { ...quote, extra: { ...quote.extra, terms: { ...terms, unlockTime: later } } },
    nonce: { ...quote, extra: { ...quote.extra, terms: { ...terms, sellerNonce: "00".repeat(32) } } },
  };
  const signature = await header(await world.buyer(), quote);
  const honest = JSON.parse(Buffer.from(signature, "base64").toString());
  for (const [what, accepted] of Object.entries(changed)) {
    const forged = Buffer.from(JSON.stringify({ ...honest, accepted })).toString("base64");
    assert.equal(errorIn(await pay(listing, forged)), "masumi_terms_unknown", what);
  }
  assert.equal(errorIn(await pay(dearer, signature)), "masumi_terms_unknown", "another listing's quote");
});

test("a listing that offers protection only has no instant entry, and the other way round", async () => {
  const only = await offered({ modes: ["protected"] });
  const instant = await offered({ modes: ["instant"] });
  const methods = async (listing: { id: string }) =>
    (await termsOf(listing)).accepts.map((entry) => entry.extra.assetTransferMethod);
  assert.deepEqual(await methods(only), ["escrow"]);
  assert.deepEqual(await methods(instant), ["default"]);
  assert.equal(
    errorIn(await pay(instant, await header(await world.buyer(), quoteIn(await termsOf(only))))),
    "masumi_terms_unknown",
  );
});

test("a service wallet buys protected within its limits, once", async () => {
  const listing = await offered({ priceLovelace: "6000000" });
  const owner = world.person("owner");
  const challenge = json<{ owner: string; digest: string }>(
    await post(`${world.api}/auth/challenge`, { address: owner.addressHex }),
  );
  const session = json<{ token: string; account: { walletAddress: string } }>(
    await post(`${world.api}/auth/verify`, { owner: challenge.owner, ...(await owner.signData(challenge.digest)) }),
  );
  await world.ledger.faucet(session.account.walletAddress, 20_000_000n);
  const headers = { authorization: `Bearer ${session.token}` };
  const wish = { listingId: listing.id, mode: "protected" };
  const bought = json<{ purchase: Purchase; content: string; alreadyOwned: boolean }>(
    await post(`${world.api}/me/buy`, wish, headers),
  );
  assert.equal(bought.content, listing.content);
  assert.equal(bought.alreadyOwned, false);
  assert.equal(bought.purchase.status, "ResultSubmitted");
  assert.equal(bought.purchase.buyerAddress, session.account.walletAddress);
  const again = json<{ alreadyOwned: boolean }>(await post(`${world.api}/me/buy`, wish, headers));
  assert.equal(again.alreadyOwned, true);
  const me = json<{ limits: { spentTodayLovelace: string }; purchases: Purchase[] }>(
    await send(`${world.api}/me`, { headers }),
  );
  assert.equal(me.limits.spentTodayLovelace, "6000000");
  assert.equal(me.purchases.length, 1);
});
