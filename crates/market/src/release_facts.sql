json_object('mode', p.mode, 'status', (SELECT status FROM purchases WHERE id = p.tx_id),
  'resultHeight', coalesce(
    (SELECT min(height) FROM escrow_steps WHERE purchase_id = p.tx_id AND result_hash IS NOT NULL),
    (SELECT min(o.block_height) FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id
      WHERE op.purchase_id = p.tx_id AND o.kind = 'result' AND o.state = 'included' AND o.recheck = 0)),
  'postedUntil', (SELECT max(o.valid_until_slot) FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id
    WHERE op.purchase_id = p.tx_id AND o.kind = 'result' AND o.state IN ('claimed', 'submitted')),
  'submitResult', (SELECT submit_result_ms FROM escrows WHERE purchase_id = p.tx_id))
