-- Every statement of this store, by name. `-- name: x` opens one; the comment after it says what it is for.

-- name: head
-- The newest entry: its index and time are the log's head.
SELECT log_index, substr(entry, 1, 40) FROM log ORDER BY log_index DESC LIMIT 1;

-- name: append
INSERT INTO log (log_index, entry, leaf_hash) VALUES (?, ?, ?);

-- name: entry
SELECT entry FROM log WHERE log_index = ?;

-- name: entries
-- A stretch of the log, in order.
SELECT log_index, entry, leaf_hash FROM log WHERE log_index >= ? AND log_index < ? ORDER BY log_index;

-- name: count_entries_holding
SELECT count(*) FROM log WHERE instr(entry, ?) > 0;

-- name: log_bytes
SELECT coalesce(sum(length(entry)), 0) FROM log;

-- name: turn_indices
SELECT log_index FROM conversation_turns WHERE id = ?;

-- name: calls_that_wrote
SELECT log_index, first_index, last_index FROM calls
WHERE args_sha256 IS NOT NULL AND first_index IS NOT NULL;

-- name: leaf_hashes
SELECT leaf_hash FROM log WHERE log_index >= ? AND log_index < ? ORDER BY log_index;

-- name: task_tip
-- The hash and type of the newest record of a task.
SELECT hash, type FROM thought_records WHERE task_id = ? ORDER BY log_index DESC LIMIT 1;

-- name: session_head
-- What decides whether a session takes records: how it ended, and whether it is sealed.
SELECT s.genesis, s.ended_index, l.log_index
FROM sessions AS s LEFT JOIN seals AS l ON l.session_id = s.session_id WHERE s.session_id = ?;

-- name: session_tip
-- The last link of a session's chain.
SELECT chain_hash, session_seq FROM thought_records INDEXED BY idx_trail_session
WHERE session_id = ? ORDER BY log_index DESC LIMIT 1;

-- name: thought_by_id
SELECT * FROM thought_records WHERE id = ?;

-- name: thoughts_between
SELECT * FROM thought_records WHERE log_index >= ? AND log_index <= ? ORDER BY log_index;

-- name: thoughts
-- All records after an index, in log order.
SELECT * FROM thought_records WHERE log_index > :after AND log_index < :end
  AND (:type IS NULL OR type = :type) ORDER BY log_index LIMIT :limit;

-- name: thoughts_of_task
SELECT * FROM thought_records INDEXED BY idx_trail_latest
WHERE task_id = :task_id AND log_index > :after AND log_index < :end
  AND (:session_id IS NULL OR session_id = :session_id)
  AND (:type IS NULL OR type = :type) ORDER BY log_index LIMIT :limit;

-- name: thoughts_of_session
SELECT * FROM thought_records INDEXED BY idx_trail_session
WHERE session_id = :session_id AND log_index > :after AND log_index < :end
  AND (:type IS NULL OR type = :type) ORDER BY log_index LIMIT :limit;

-- name: task_ids_with_thoughts
-- Every task label that has records.
SELECT DISTINCT task_id FROM thought_records ORDER BY task_id;

-- name: session_ids
SELECT session_id FROM sessions ORDER BY log_index;

-- name: session_by_id
SELECT * FROM sessions WHERE session_id = ?;

-- name: session_at
SELECT * FROM sessions WHERE log_index = ?;

-- name: sessions
-- Newest first.
SELECT * FROM sessions WHERE log_index < :before
  AND (:task_id IS NULL OR task_id = :task_id)
  AND (:continues IS NULL OR continues_session_id = :continues)
  AND (:state IS NULL OR :state = CASE WHEN ended_index IS NOT NULL THEN 'ended'
       WHEN EXISTS (SELECT 1 FROM seals WHERE seals.session_id = sessions.session_id) THEN 'sealed'
       ELSE 'open' END)
ORDER BY log_index DESC LIMIT :limit;

-- name: idle_sessions
-- Sessions neither ended nor sealed whose newest fact is older than a time.
SELECT session_id FROM sessions WHERE ended_index IS NULL
  AND NOT EXISTS (SELECT 1 FROM seals WHERE seals.session_id = sessions.session_id)
  AND max(at,
    coalesce((SELECT at FROM thought_records INDEXED BY idx_trail_session
      WHERE thought_records.session_id = sessions.session_id
      ORDER BY log_index DESC LIMIT 1), 0),
    coalesce((SELECT max(at) FROM conversation_turns INDEXED BY idx_turns_session
      WHERE conversation_turns.session_id = sessions.session_id), 0),
    coalesce((SELECT max(at) FROM tool_calls INDEXED BY idx_tool_calls_session
      WHERE tool_calls.session_id = sessions.session_id), 0)) < ?
ORDER BY log_index;

-- name: end_session
UPDATE sessions SET ended_index = ?, ended_at = ?, end_reason = ? WHERE session_id = ?;

-- name: seal_of
SELECT * FROM seals WHERE session_id = ?;

-- name: session_entries
-- Every entry that names a session, found in the bytes of a stretch of the log, from its start on.
SELECT log_index, leaf_hash, instr(entry, :thought) > 0 FROM log
WHERE log_index >= :start AND log_index < :end AND instr(entry, :name) > 0
  AND (log_index = :start OR instr(entry, :started) = 0) ORDER BY log_index;

-- name: task_entry_indices
-- Every entry that names a task, in log order.
SELECT log_index FROM task_versions WHERE id = :task_id
UNION SELECT log_index FROM thought_records INDEXED BY idx_trail_latest WHERE task_id = :task_id
UNION SELECT log_index FROM sessions WHERE task_id = :task_id
ORDER BY 1;

-- name: newest_thoughts
SELECT log_index FROM thought_records WHERE log_index >= 0 ORDER BY log_index DESC LIMIT ?;

-- name: record_count
SELECT count(*) FROM thought_records INDEXED BY idx_trail_session
WHERE session_id = ? AND log_index < ?;

-- name: task_now
-- The newest version of a task.
SELECT * FROM task_versions WHERE id = ? ORDER BY log_index DESC LIMIT 1;

-- name: task_version
SELECT * FROM task_versions WHERE log_index = ?;

-- name: task_version_indices
SELECT log_index FROM task_versions WHERE id = ? ORDER BY log_index;

-- name: approvals
-- Who decided about a tool call, oldest first.
SELECT * FROM approvals WHERE request_id = ? AND call_id = ? ORDER BY log_index;

-- name: linked_session
-- The session that another program's id was linked with last.
SELECT s.* FROM session_links AS l JOIN sessions AS s ON s.session_id = l.session_id
WHERE l.source = ? AND l.external_id = ? ORDER BY l.log_index DESC LIMIT 1;

-- name: links
SELECT * FROM session_links WHERE session_id = ? ORDER BY log_index;

-- name: captures
SELECT * FROM captures INDEXED BY idx_captures_session WHERE session_id = ? ORDER BY log_index;

-- name: captures_of_all
-- Channels that were switched on or off for everything.
SELECT * FROM captures WHERE session_id IS NULL ORDER BY log_index;

-- name: dropped
SELECT * FROM dropped_events ORDER BY log_index;

-- name: setting_changes
-- The view only says where the log has them: a row that belongs to no entry changes no setting.
SELECT s.log_index, log.entry FROM setting_changes AS s JOIN log ON log.log_index = s.log_index
WHERE s.log_index < ? ORDER BY s.log_index;

-- name: identity_changes
-- Keys that began or ceased to sign, and names the log went by, in log order.
SELECT c.log_index, log.entry FROM (
  SELECT log_index FROM key_changes UNION ALL SELECT log_index FROM origin_changes) AS c
LEFT JOIN log ON log.log_index = c.log_index ORDER BY c.log_index;

-- name: erasures
-- What was erased, from the log itself.
SELECT log_index, entry, NULL, NULL FROM log
WHERE instr(entry, CAST('"kind":"payload.erased"' AS BLOB)) > 0 ORDER BY log_index;

-- name: erasures_viewed
-- What was erased, with what the view says of it.
SELECT e.log_index, log.entry, e.fields, e.at FROM erasures AS e JOIN log ON log.log_index = e.log_index
ORDER BY e.log_index;

-- name: nodes
SELECT hash FROM merkle_nodes WHERE tree = ? AND level = ? AND position >= ? AND position < ?
ORDER BY position;

-- name: add_node
INSERT INTO merkle_nodes (tree, level, position, hash) VALUES (?, ?, ?, ?);

-- name: find_key
SELECT operation, salt, input_digest, first_index, last_index FROM idempotency_keys WHERE key = ?;

-- name: forget_inputs
-- A digest of an input with erased words in it would lead back to them.
UPDATE idempotency_keys SET salt = X'', input_digest = X'' WHERE EXISTS (
  SELECT 1 FROM json_each(?) WHERE value BETWEEN first_index AND last_index);

-- name: erase_content
UPDATE thought_records SET content = '', erased_at = ? WHERE log_index = ?;

-- name: add_key
INSERT INTO idempotency_keys (key, operation, salt, input_digest, first_index, last_index)
VALUES (?, ?, ?, ?, ?, ?);

-- name: chain_of_task
-- A task chain with its entries, for verification.
SELECT t.*, log.entry FROM thought_records AS t INDEXED BY idx_trail_latest
LEFT JOIN log ON log.log_index = t.log_index WHERE t.task_id = CAST(? AS TEXT) ORDER BY t.log_index;

-- name: chain_of_session
SELECT t.*, log.entry FROM thought_records AS t INDEXED BY idx_trail_session
LEFT JOIN log ON log.log_index = t.log_index WHERE t.session_id = CAST(? AS TEXT) ORDER BY t.log_index;

-- name: task_hash_before
SELECT hash FROM thought_records INDEXED BY idx_trail_latest
WHERE task_id = ? AND log_index < ? ORDER BY log_index DESC LIMIT 1;

-- name: session_last_before
SELECT chain_hash, session_seq, type, task_id, log_index
FROM thought_records INDEXED BY idx_trail_session
WHERE session_id = ? AND log_index < ? ORDER BY log_index DESC LIMIT 1;

-- name: session_first
SELECT log_index FROM thought_records INDEXED BY idx_trail_session
WHERE session_id = ? ORDER BY log_index LIMIT 1;

-- name: session_thought_indices
SELECT log_index FROM thought_records INDEXED BY idx_trail_session
WHERE session_id = :session_id AND log_index < :end;

-- name: tree_nodes
-- Every kept node of a tree, level by level.
SELECT level, position, hash FROM merkle_nodes WHERE tree = ? ORDER BY level, position;

-- name: stray_nodes
-- Nodes that belong to no tree: beyond the log's size, at a level not kept, or of no seal.
SELECT tree, level, position FROM merkle_nodes
WHERE CASE WHEN tree = 0 THEN level NOT IN (8, 16, 24, 32, 40, 48, 56)
        OR position < 0 OR position >= (?1 >> level)
      ELSE NOT EXISTS (SELECT 1 FROM log WHERE log.log_index = merkle_nodes.tree
        AND instr(log.entry, CAST('"kind":"session.sealed"' AS BLOB)) > 0) END;

-- name: newest_remembered
-- The newest entry that an idempotency key stands for.
SELECT max(last_index) FROM idempotency_keys;

-- name: call_ends
-- What finished a tool call; a late result stands last.
SELECT log_index FROM tool_calls
WHERE request_id = ? AND call_id = ? AND status <> 'requested' ORDER BY at, log_index;

-- name: call_requests
SELECT log_index FROM tool_calls
WHERE request_id = ? AND call_id = ? AND status = 'requested' ORDER BY at, log_index;
