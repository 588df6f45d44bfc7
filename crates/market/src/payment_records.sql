SELECT {ENTRY}, p.listing_id, p.payer, p.header_digest, p.delivered_at_ms, p.mode, u.status,
  iif(outbox.state = 'included',
    iif(outbox.recheck = 0 AND c.tip_height - outbox.block_height >= {deep}, c.tip_height - outbox.block_height, 0), NULL)
    AS payment_depth,
  coalesce(first.tx_id, posted.tx_id) AS result_tx,
  iif(coalesce(first.recheck, 0) = 0 AND coalesce(own.recheck, 0) = 0
    AND c.tip_height - coalesce(first.height, posted.block_height) >= {deep},
    c.tip_height - coalesce(first.height, posted.block_height), 0) AS result_depth,
  (SELECT max(o.valid_until_slot) FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id
    WHERE op.purchase_id = p.tx_id AND o.kind = 'result' AND o.phase = 'open') AS posted_until,
  e.submit_result_ms AS submit_result{more}
FROM payments p JOIN outbox ON outbox.tx_id = p.tx_id
  LEFT JOIN chain_state c ON c.id = 1
  LEFT JOIN purchases u ON u.id = p.tx_id
  LEFT JOIN escrows e ON e.purchase_id = p.tx_id
  -- The step that posted the first result, or that paid the escrow out without one.
  LEFT JOIN escrow_steps first ON first.purchase_id = p.tx_id AND first.position = (SELECT min(position)
    FROM escrow_steps WHERE purchase_id = p.tx_id AND (result_hash IS NOT NULL OR status IN ('withdrawn', 'closed')))
  LEFT JOIN outbox own ON own.tx_id = first.tx_id
  -- A result that a block includes and that is not recorded as a step yet.
  LEFT JOIN outbox posted ON posted.tx_id = (SELECT o.tx_id FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id
    WHERE op.purchase_id = p.tx_id AND o.kind = 'result' AND o.state = 'included' AND o.recheck = 0
    ORDER BY o.block_height LIMIT 1)
WHERE {which}
