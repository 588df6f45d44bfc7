json_patch('{}', json_object('id', id, 'listingId', listing_id, 'mode', mode,
'buyerAddress', buyer_address,
'paidFromBalance', json((SELECT 'true' FROM accounts WHERE wallet_address = buyer_address)), 'txHash', id, 'status', status,
'events', json((SELECT json_group_array(json_object('status', e.status, 'txHash', e.tx_id, 'at', CAST(e.at_ms AS TEXT)))
  FROM (SELECT 'settled' AS status, purchases.id AS tx_id, purchases.bought_at_ms AS at_ms, 0 AS late, 0 AS position
      WHERE purchases.mode = 'instant'
    UNION ALL SELECT status, tx_id, at_ms, 0, position FROM escrow_steps WHERE purchase_id = purchases.id
    UNION ALL SELECT 'creator_paid', tx_id, at_ms, 1, position FROM escrow_steps
      WHERE purchase_id = purchases.id AND creator_paid = 1
    UNION ALL SELECT 'creator_paid', o.tx_id, o.block_time_ms, 1, 0 FROM outbox_purchases op
      JOIN outbox o ON o.tx_id = op.tx_id WHERE op.purchase_id = purchases.id AND o.kind = 'payout'
      AND o.state = 'included'
    ORDER BY 4, 5) AS e)),
'escrow', json((SELECT json_patch('{}', json_object('address', address, 'inputHash', input_hash,
    'resultHash', result_hash, 'identifierFromPurchaser', purchase_id, 'deadlines', json_object(
    'payBy', CAST(pay_by_ms AS TEXT), 'submitResult', CAST(submit_result_ms AS TEXT),
    'unlock', CAST(unlock_ms AS TEXT), 'externalDisputeUnlock', CAST(external_dispute_unlock_ms AS TEXT))))
  FROM escrows WHERE purchase_id = purchases.id)),
'verification', (SELECT verification FROM payments WHERE tx_id = purchases.id),
'decision', json((SELECT json_patch('{}', json_object('winner', d.winner, 'reason', d.reason, 'txHash',
    (SELECT last.tx_id FROM escrow_steps last JOIN escrow_steps disputed ON disputed.purchase_id = last.purchase_id
      AND disputed.position = last.position - 1 WHERE last.purchase_id = purchases.id AND last.utxo IS NULL
      AND disputed.status = 'Disputed')))
  FROM decisions d WHERE d.purchase_id = purchases.id))))
