SELECT json_object('vitals', {vitals},
'openEscrows', (SELECT count(*) FROM escrows WHERE utxo IS NOT NULL),
'oldestDeadline', json((SELECT json_object('purchase', purchase_id, 'status', status, 'at', CAST(at AS TEXT)) FROM (
  SELECT e.purchase_id, p.status, CASE WHEN p.status IN ('FundsLocked', 'RefundRequested') THEN e.submit_result_ms
    WHEN p.status = 'Disputed' THEN e.external_dispute_unlock_ms ELSE e.unlock_ms END AS at
  FROM escrows e JOIN purchases p ON p.id = e.purchase_id WHERE e.utxo IS NOT NULL ORDER BY at LIMIT 1))),
'restore', json((SELECT json_object('walletsLeft', (SELECT count(*) FROM unread_wallets)) FROM restored
  WHERE platform IS NULL OR EXISTS (SELECT 1 FROM unread_wallets))))
