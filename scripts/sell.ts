// `make sell`: lists a file for sale at a running `make dev`, signed by the wallet of a seller by name.

import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { listingProof } from "../tests/wallets/proof.ts";
import { walletNamed } from "../tests/wallets/wallet.ts";

const {
  API_PORT = "8787",
  LEDGER_PORT = "8990",
  FILE = "",
  PRICE = "6",
  SELLER = "somebody",
  MODES = "instant,protected",
} = process.env;

async function sell(): Promise<void> {
  if (!existsSync(FILE)) throw new Error("FILE must be a text file: make sell FILE=... PRICE=6 SELLER=name");
  if (!/^\d+(\.\d{1,6})?$/.test(PRICE)) throw new Error("PRICE must be in ADA: 2 or 2.5");
  const [ada = "", parts = ""] = PRICE.split(".");
  const seller = walletNamed(SELLER, { blockfrost: `http://127.0.0.1:${LEDGER_PORT}/api/v0` });
  const content = readFileSync(FILE, "utf8");
  const lines = content.split("\n").map((line) => line.trim());
  const offer = {
    title: lines.find((line) => line.startsWith("# "))?.slice(2) ?? basename(FILE),
    description: lines.find((line) => line && !line.startsWith("#")) ?? "A text",
    priceLovelace: `${BigInt(ada + parts.padEnd(6, "0"))}`,
    sellerAddress: seller.address,
    modes: MODES.split(","),
    content,
  };
  const api = `http://127.0.0.1:${API_PORT}`;
  const response = await fetch(`${api}/listings`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-service-proof": await listingProof(seller, offer) },
    body: JSON.stringify(offer),
  });
  const answer = (await response.json()) as { id?: string; error?: string };
  if (response.status !== 201) throw new Error(`refused: ${answer.error}`);
  console.log(JSON.stringify(answer, null, 2));
  console.log(`\nits signed terms: curl -i ${api}/listings/${answer.id}/unlock`);
}

await sell().catch((error: Error) => {
  console.error(`sell: ${error.message}`);
  process.exit(1);
});
