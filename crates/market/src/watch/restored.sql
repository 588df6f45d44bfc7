-- Marks a restored database. No wallet of the service pays until the watcher has read its transactions since the backup
-- from the chain. Running it again starts over.
INSERT INTO restored (id, height, at_ms)
-- The deepest possible rollback is 2,160 blocks.
SELECT 1, max(0, coalesce((SELECT tip_height FROM chain_state), 0) - 2160),
  -- A local ledger's clock may be ahead.
  max(unixepoch() * 1000, coalesce((SELECT tip_time_ms FROM chain_state), 0)) WHERE true
ON CONFLICT (id) DO UPDATE SET height = min(height, excluded.height), at_ms = excluded.at_ms, platform = NULL;
DELETE FROM unread_wallets;
INSERT INTO unread_wallets (wallet, height, position) SELECT wallet_address, height, 0 FROM accounts, restored WHERE true
ON CONFLICT DO NOTHING;
-- Sessions and grants that ended since the backup must not become valid again, so everyone signs in again.
DELETE FROM sessions;
UPDATE oauth_grants SET revoked_at_ms = unixepoch() * 1000 WHERE revoked_at_ms IS NULL;
