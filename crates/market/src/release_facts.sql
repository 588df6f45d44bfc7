json_object('mode', p.mode, 'status', (SELECT status FROM purchases WHERE id = p.tx_id),
  'paymentDepth', iif(outbox.state = 'included', coalesce((SELECT tip_height - outbox.block_height FROM chain_state
    WHERE outbox.recheck = 0 AND tip_height - outbox.block_height >= {deep}), 0), NULL),
  'result', json(coalesce(
    (SELECT json_object('tx', s.tx_id, 'depth', coalesce((SELECT tip_height - s.height FROM chain_state
        WHERE s.recheck = 0 AND coalesce(o.recheck, 0) = 0 AND tip_height - s.height >= {deep}), 0))
      FROM escrow_steps s LEFT JOIN outbox o ON o.tx_id = s.tx_id
      WHERE s.purchase_id = p.tx_id AND (s.result_hash IS NOT NULL OR s.status IN ('withdrawn', 'closed'))
      ORDER BY s.position LIMIT 1),
    (SELECT json_object('tx', o.tx_id, 'depth', coalesce((SELECT tip_height - o.block_height FROM chain_state
        WHERE tip_height - o.block_height >= {deep}), 0))
      FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id
      WHERE op.purchase_id = p.tx_id AND o.kind = 'result' AND o.state = 'included' AND o.recheck = 0
      ORDER BY o.block_height LIMIT 1))),
  'postedUntil', (SELECT max(o.valid_until_slot) FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id
    WHERE op.purchase_id = p.tx_id AND o.kind = 'result' AND o.state IN ('claimed', 'submitted')),
  'submitResult', (SELECT submit_result_ms FROM escrows WHERE purchase_id = p.tx_id))
