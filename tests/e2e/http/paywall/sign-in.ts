// A returning buyer who signs the challenge of a 402 (docs/sign-in-with-x.md), with each library's signData.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { describe, it } from "node:test";
import { signers } from "../../../../stack/wallets/sign-data.ts";
import type { Wallet } from "../../../../stack/wallets/wallet.ts";
import { errorOf, send } from "../../../support/helpers/http.ts";
import { list } from "../../../support/helpers/listings.ts";
import { makeOut, refusalOf, settle, termsOf, unlockUrl } from "../../../support/helpers/payments.ts";
import type { World } from "../../../support/helpers/world.ts";

interface Challenge {
  readonly info: Record<string, string>;
  readonly supportedChains: { readonly chainId: string; readonly type: string }[];
}

export function signIn(world: () => World): void {
  const bought = async () => {
    const [listing, payer] = [await list(world().api, world().person("seller")), await world().buyer()];
    const payment = await makeOut(world(), payer, listing);
    assert.equal((await settle(world(), listing, payment)).status, 200);
    return { listing, payer, payment };
  };

  /** The extension of a new 402. */
  const challenge = async (listing: { id: string }): Promise<Challenge> => {
    const { extensions } = termsOf(await send(unlockUrl(world(), listing)));
    return (extensions as Record<string, unknown>)["sign-in-with-x"] as Challenge;
  };

  /** The text that the documentation defines. */
  const message = (info: Record<string, string>, address: string) =>
    `${info.domain} wants you to sign in with your Cardano account:\n${address}\n\n${info.statement}\n\n` +
    `URI: ${info.uri}\nVersion: ${info.version}\nChain ID: preprod\nNonce: ${info.nonce}\n` +
    `Issued At: ${info.issuedAt}\nExpiration Time: ${info.expirationTime}`;

  const signed = async (wallet: Wallet, { info }: Challenge, signer = signers["evolution-sdk"]) => {
    assert.ok(signer);
    const text = Buffer.from(message(info, wallet.address)).toString("hex");
    const { signature, key } = await signer(wallet.keys, wallet.kind, text);
    return { ...info, chainId: "cardano:preprod", type: "cip8", address: wallet.address, signature, key };
  };

  const present = (listing: { id: string }, payload: object, headers: Record<string, string> = {}) => {
    const header = Buffer.from(JSON.stringify(payload)).toString("base64");
    return send(unlockUrl(world(), listing), { headers: { "sign-in-with-x": header, ...headers } });
  };

  describe("a signed challenge", () => {
    it("gets the buyer the content again, signed by each wallet library, and as often as it is sent", async () => {
      const { listing, payer, payment } = await bought();
      for (const [name, signer] of Object.entries(signers)) {
        const payload = await signed(payer, await challenge(listing), signer);
        for (const attempt of ["first", "second"]) {
          const answer = await present(listing, payload);
          assert.deepEqual([answer.status, answer.text], [200, listing.content], `${name}, ${attempt}`);
          assert.equal(answer.headers.get("x-service-purchase"), payment.tx);
          assert.equal(answer.headers.get("payment-response"), null);
        }
      }
    });

    it("is bound to the listing, the service, the signer and the service's own challenges", async () => {
      const { listing, payer } = await bought();
      const [other, stranger, offered] = [await bought(), await world().buyer(), await challenge(listing)];
      const { info } = offered;
      const { host, origin } = new URL(world().api);
      assert.deepEqual([info.domain, new URL(info.uri ?? "").origin], [host, origin]);
      assert.equal(Date.parse(info.expirationTime ?? "") - Date.parse(info.issuedAt ?? ""), 300_000);
      const changed = (change: Record<string, string>) => signed(payer, { ...offered, info: { ...info, ...change } });
      const honest = await signed(payer, offered);
      const refused: [string, object][] = [
        ["another listing's challenge", await signed(payer, await challenge(other.listing))],
        ["another domain", await changed({ domain: "evil.example.com" })],
        ["a later end", await changed({ expirationTime: "2099-01-01T00:00:00.000Z" })],
        ["another nonce", await changed({ nonce: "0".repeat(32) })],
        ["another statement", await changed({ statement: "Win a prize" })],
        ["another's address", { ...honest, address: stranger.address }],
        ["another chain", { ...honest, chainId: "cardano:mainnet" }],
        ["an EVM signature", { ...honest, type: "eip191" }],
        ["no key", { ...honest, key: undefined }],
      ];
      for (const [name, payload] of refused)
        assert.equal(refusalOf(await present(listing, payload)), "proof_refused", name);
      const garbage = await send(unlockUrl(world(), listing), { headers: { "sign-in-with-x": "x".repeat(9_000) } });
      assert.match(errorOf(garbage, 402), /^SIGN-IN-WITH-X must be base64/);
      assert.equal(refusalOf(await present(listing, await signed(stranger, offered))), "not_owned");
      assert.equal(
        refusalOf(await present(listing, honest, { "x-service-proof": "e30=" })),
        "proof_refused",
        "one proof",
      );
      assert.equal((await present(listing, honest)).status, 200);
    });

    it("leaves room in the header of a 402 with both payment methods", async () => {
      const modes = ["instant", "protected"];
      const title = "🦀".repeat(60);
      const listing = await list(world().api, world().person("seller"), { modes, title, priceLovelace: "6000000" });
      const { headers } = await send(unlockUrl(world(), listing));
      const { length } = headers.get("payment-required") ?? "";
      assert.ok(length > 0 && length < 12_000, `${length} characters`);
    });
  });
}
