// A buyer locks money only under consistent terms. Each case changes one thing of a valid offer.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { Address } from "@evolution-sdk/evolution";
import type { PaymentRequirements } from "@x402/core/types";
import { type EscrowExtra, readExtra } from "../../../../stack/buyer/escrow/extra.ts";
import { commitmentTo, issue, sign } from "../../../../stack/buyer/escrow/issue.ts";
import { checkOffer } from "../../../../stack/buyer/escrow/terms.ts";
import { addressOf, keysNamed } from "../../../../stack/wallets/keys.ts";
import type { Prover } from "../../../../stack/wallets/proof.ts";
import { type Checker, checkers, signers } from "../../../../stack/wallets/sign-data.ts";

const now = 1_790_000_000_000;
const content = { listingId: "lst_01", contentHash: "5c".repeat(32) };
const prover = (name: string, signer = "evolution-sdk"): Prover => ({
  address: Address.toBech32(addressOf(keysNamed(name), "enterprise")),
  signData: async (payload) => {
    const sign = signers[signer];
    assert.ok(sign);
    return sign(keysNamed(name), "enterprise", payload);
  },
});
const seller = prover("seller");
const deployment = { requiredAdmins: "1", adminVkeys: ["ab".repeat(28)], cooldownPeriod: "60000" };

/** Independent implementations have to agree about the seller's signature. */
const agreed: Checker = async (...signed) => {
  const answers = await Promise.all(Object.values(checkers).map((check) => check(...signed).catch(() => false)));
  return answers.every((holds) => holds);
};

const check = (offer: PaymentRequirements) =>
  checkOffer(
    offer,
    readExtra(offer.extra),
    now,
    (parts) => JSON.stringify(parts.get("listing")) === JSON.stringify(content),
    agreed,
  );

type Draft = PaymentRequirements & { extra: { -readonly [name in keyof EscrowExtra]: EscrowExtra[name] } };

describe("the terms of an escrow offer", () => {
  let offer: Draft;
  before(async () => {
    offer = (await issue({ seller, lovelace: 5_000_000n, now, deployment, content })) as Draft;
  });
  const changed = (change: (draft: Draft) => void): Draft => {
    const draft = structuredClone(offer);
    change(draft);
    return draft;
  };
  /** Signs again after the change, so that only the change is wrong. */
  const resigned = (change: (draft: Draft) => void) => sign(seller, changed(change));

  it("are taken as the seller signed them", async () => {
    await check(offer);
    await check(await resigned(() => {}));
  });

  it("are taken with the method's upstream name, which is signed", async () => {
    await check(await resigned((it) => Object.assign(it.extra, { assetTransferMethod: "masumi" })));
    await assert.rejects(
      check(changed((it) => Object.assign(it.extra, { assetTransferMethod: "masumi" }))),
      /signature/,
    );
  });

  // Changes to signed fields after signing.
  const afterSigning: Record<string, (it: Draft) => void> = {
    amount: (it) => Object.assign(it, { amount: "5000001" }),
    asset: (it) => Object.assign(it, { asset: "lovelaces" }),
    network: (it) => Object.assign(it, { network: "cip34:0-1" }),
    maxTimeoutSeconds: (it) => Object.assign(it, { maxTimeoutSeconds: 301 }),
    "submit deadline": (it) =>
      Object.assign(it.extra.terms, { submitResultTime: `${Number(it.extra.terms.submitResultTime) - 1}` }),
    "seller nonce": (it) => Object.assign(it.extra.terms, { sellerNonce: "00".repeat(32) }),
  };
  for (const [what, change] of Object.entries(afterSigning)) {
    it(`are refused with another ${what} than was signed`, async () => {
      await assert.rejects(check(changed(change)), /signature|identifier/);
    });
  }

  it("are refused when another key signed them", async () => {
    await assert.rejects(check(await sign(prover("stranger"), offer)), /signature/);
  });

  it("are refused when the payload was hashed before it was signed", async () => {
    await assert.rejects(check(await sign(prover("seller", "message-signing, hashed"), offer)), /signature/);
  });

  it("are refused when the identifier names another contract or signature", async () => {
    await assert.rejects(check(changed((it) => Object.assign(it.extra, { blockchainIdentifier: "00" }))), /identifier/);
  });

  it("are refused when the committed content has another digest", async () => {
    const other = commitmentTo({ ...content, listingId: "lst_02" });
    await assert.rejects(
      check(
        await resigned((it) => {
          Object.assign(it.extra.inputCommitment.parts[0] ?? {}, { content: other.parts[0]?.content });
        }),
      ),
      /digest of part listing/,
    );
  });

  it("are refused when the commitment's digest is not that of its parts", async () => {
    const other = commitmentTo({ ...content, listingId: "lst_02" });
    await assert.rejects(
      check(await resigned((it) => Object.assign(it.extra.inputCommitment, { parts: other.parts }))),
      /digest of the commitment/,
    );
  });

  it("are refused when the terms bind another commitment", async () => {
    const other = commitmentTo({ ...content, listingId: "lst_02" });
    await assert.rejects(
      check(await resigned((it) => Object.assign(it.extra, { inputCommitment: other }))),
      /terms.inputHash/,
    );
  });

  it("are refused when they are for another request than the application's", async () => {
    const other = await issue({
      seller,
      lovelace: 5_000_000n,
      now,
      deployment,
      content: { ...content, listingId: "x" },
    });
    await assert.rejects(check(other), /does not want/);
  });

  const minutes = (it: Draft) => Number(it.extra.terms.payByTime);
  const deadlines: Record<string, [(it: Draft) => void, RegExp]> = {
    "a payment deadline that has passed": [
      (it) => Object.assign(it.extra.terms, { payByTime: `${now}` }),
      /has passed/,
    ],
    "a payment deadline beyond the timeout": [
      (it) => Object.assign(it.extra.terms, { payByTime: `${minutes(it) + 60_001}` }),
      /later than/,
    ],
    "less than 5 minutes to submit": [
      (it) => Object.assign(it.extra.terms, { submitResultTime: `${minutes(it) + 299_999}` }),
      /submitResultTime/,
    ],
    "less than 15 minutes to unlock": [
      (it) => Object.assign(it.extra.terms, { unlockTime: `${Number(it.extra.terms.submitResultTime) + 899_999}` }),
      /unlockTime/,
    ],
    "less than 15 minutes to dispute": [
      (it) =>
        Object.assign(it.extra.terms, { externalDisputeUnlockTime: `${Number(it.extra.terms.unlockTime) + 899_999}` }),
      /externalDisputeUnlockTime/,
    ],
  };
  for (const [what, [change, reason]] of Object.entries(deadlines)) {
    it(`are refused with ${what}`, async () => {
      await assert.rejects(check(await resigned(change)), reason);
    });
  }

  const shapes: Record<string, (it: Draft) => void> = {
    "an unknown field in extra": (it) => Object.assign(it.extra, { note: "" }),
    "an unknown field in terms": (it) => Object.assign(it.extra.terms, { amount: "5000000" }),
    "an unknown field in the commitment": (it) => Object.assign(it.extra.inputCommitment, { note: "" }),
    "an unknown field in a part": (it) => Object.assign(it.extra.inputCommitment.parts[0] ?? {}, { note: "" }),
    "an unknown field in the deployment": (it) => Object.assign(it.extra.deployment ?? {}, { note: "" }),
    "an unknown field in the confirmation policy": (it) => Object.assign(it.extra, { confirmationPolicy: { l2: 0 } }),
    "sponsored fees": (it) => Object.assign(it.extra, { areFeesSponsored: true }),
    "another contract generation": (it) => Object.assign(it.extra.terms, { paymentType: "Web3CardanoV1" }),
    "a null return address": (it) => Object.assign(it.extra.terms, { sellerReturnAddress: null }),
    "a deadline as a number": (it) => Object.assign(it.extra.terms, { payByTime: now }),
    "a deadline with a leading zero": (it) => Object.assign(it.extra.terms, { payByTime: `0${now}` }),
    "a short seller nonce": (it) => Object.assign(it.extra.terms, { sellerNonce: "00" }),
    "an uppercase key": (it) => Object.assign(it.extra, { referenceKey: it.extra.referenceKey.toUpperCase() }),
    "no terms": (it) => Object.assign(it.extra, { terms: undefined }),
    "no parts": (it) => Object.assign(it.extra.inputCommitment, { parts: [] }),
  };
  for (const [what, change] of Object.entries(shapes)) {
    it(`are refused with ${what}`, () => {
      readExtra(offer.extra);
      assert.throws(() => readExtra(changed(change).extra), { name: "Refused" });
    });
  }

  it("are refused for a seller whose address is a script", async () => {
    const script = await resigned((it) => Object.assign(it.extra.terms, { sellerAddress: it.payTo }));
    await assert.rejects(check(script), /preprod key/);
  });
});
