-- Marks a database that was restored, from a file or by Time Travel. No wallet of the service pays until the watcher has read
-- from the chain what it paid since. Running it again begins anew.
INSERT INTO restored (id, height, at_ms)
-- No rollback reaches further back than 2,160 blocks.
SELECT 1, max(0, coalesce((SELECT tip_height FROM chain_state), 0) - 2160),
  -- A local ledger's clock may be ahead.
  max(unixepoch() * 1000, coalesce((SELECT tip_time_ms FROM chain_state), 0)) WHERE true
ON CONFLICT (id) DO UPDATE SET height = min(height, excluded.height), at_ms = excluded.at_ms, platform = NULL;
DELETE FROM unread_wallets;
INSERT INTO unread_wallets (wallet, height, position) SELECT wallet_address, height, 0 FROM accounts, restored WHERE true
ON CONFLICT DO NOTHING;
-- What was ended since the backup must not come alive again: people sign in anew, and connect their agents anew.
DELETE FROM sessions;
UPDATE oauth_grants SET revoked_at_ms = unixepoch() * 1000 WHERE revoked_at_ms IS NULL;
