-- What was erased. The guards of every text let it go, together with its salt, when the newest row
-- here names it; nothing else about a row can change.
CREATE TABLE IF NOT EXISTS erasures (
  log_index    INTEGER PRIMARY KEY,
  fields       TEXT NOT NULL,
  field_count  INTEGER NOT NULL,
  erased_by    TEXT NOT NULL,
  reason       TEXT,
  reason_salt  BLOB,
  at           INTEGER NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS erasures_refuses_update BEFORE UPDATE ON erasures
BEGIN SELECT RAISE(ABORT, 'erasures are append-only'); END;
CREATE TRIGGER IF NOT EXISTS erasures_refuses_delete BEFORE DELETE ON erasures
BEGIN SELECT RAISE(ABORT, 'erasures are append-only'); END;

-- What may go now: the fields of the newest erasure, as JSON without spaces.
CREATE VIEW IF NOT EXISTS erasing AS
SELECT fields FROM erasures ORDER BY log_index DESC LIMIT 1;

DROP TRIGGER IF EXISTS thought_records_refuses_update;
CREATE TRIGGER IF NOT EXISTS thought_records_refuses_update BEFORE UPDATE OF
  log_index, id, type, task_id, agent_id, timestamp, prev_hash, hash, created_at, session_id,
  session_seq, content_hash, chain_hash, parent_chain_hash, at ON thought_records
BEGIN SELECT RAISE(ABORT, 'thought records are append-only'); END;
CREATE TRIGGER IF NOT EXISTS thought_records_erased_with_entry BEFORE UPDATE OF content, erased_at
  ON thought_records
  WHEN NOT (NEW.content = '' AND NEW.erased_at IS NOT NULL AND OLD.erased_at IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"content"]'), 0))
BEGIN SELECT RAISE(ABORT, 'thought records are append-only'); END;

DROP TRIGGER IF EXISTS sessions_refuses_update;
CREATE TRIGGER IF NOT EXISTS sessions_refuses_update BEFORE UPDATE OF
  log_index, session_id, task_id, caller, started_at, genesis, continues_session_id,
  continues_chain_hash, proof_grade, project, model, at ON sessions
BEGIN SELECT RAISE(ABORT, 'how a session started cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS sessions_intent_erased_with_entry BEFORE UPDATE OF intent, intent_salt
  ON sessions WHEN NOT (NEW.intent IS NULL AND NEW.intent_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"intent"]'), 0))
BEGIN SELECT RAISE(ABORT, 'how a session started cannot be changed'); END;

DROP TRIGGER IF EXISTS task_versions_refuses_update;
CREATE TRIGGER IF NOT EXISTS task_versions_refuses_update BEFORE UPDATE OF
  log_index, id, title_index, description_index, project_id, status, priority, assignee,
  attempt, created_at, updated_at, deleted_at, created_index, at ON task_versions
BEGIN SELECT RAISE(ABORT, 'a version of a task cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS task_versions_title_erased_with_entry BEFORE UPDATE OF title, title_salt
  ON task_versions WHEN NOT (NEW.title IS NULL AND NEW.title_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"title"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a task cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS task_versions_description_erased_with_entry
  BEFORE UPDATE OF description, description_salt ON task_versions
  WHEN NOT (NEW.description IS NULL AND NEW.description_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"description"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a task cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS task_versions_reason_erased_with_entry BEFORE UPDATE OF reason, reason_salt
  ON task_versions WHEN NOT (NEW.reason IS NULL AND NEW.reason_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"reason"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a task cannot be changed'); END;

DROP TRIGGER IF EXISTS key_changes_refuses_update;
CREATE TRIGGER IF NOT EXISTS key_changes_refuses_update BEFORE UPDATE OF
  log_index, state, vkey, changed_by, at ON key_changes
BEGIN SELECT RAISE(ABORT, 'key changes are append-only'); END;
CREATE TRIGGER IF NOT EXISTS key_changes_reason_erased_with_entry BEFORE UPDATE OF reason, reason_salt
  ON key_changes WHEN NOT (NEW.reason IS NULL AND NEW.reason_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"reason"]'), 0))
BEGIN SELECT RAISE(ABORT, 'key changes are append-only'); END;

DROP TRIGGER IF EXISTS origin_changes_refuses_update;
CREATE TRIGGER IF NOT EXISTS origin_changes_refuses_update BEFORE UPDATE OF
  log_index, old_origin, old_size, old_root, origin, at ON origin_changes
BEGIN SELECT RAISE(ABORT, 'origin changes are append-only'); END;
CREATE TRIGGER IF NOT EXISTS origin_changes_reason_erased_with_entry BEFORE UPDATE OF reason, reason_salt
  ON origin_changes WHEN NOT (NEW.reason IS NULL AND NEW.reason_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"reason"]'), 0))
BEGIN SELECT RAISE(ABORT, 'origin changes are append-only'); END;

DROP TRIGGER IF EXISTS calls_refuses_update;
CREATE TRIGGER IF NOT EXISTS calls_refuses_update BEFORE UPDATE OF
  log_index, state, tool, caller, duration_us, outcome, first_index, last_index, at ON calls
BEGIN SELECT RAISE(ABORT, 'calls are append-only'); END;
CREATE TRIGGER IF NOT EXISTS calls_args_sha256_erased_with_entry
  BEFORE UPDATE OF args_sha256, args_sha256_salt ON calls
  WHEN NOT (NEW.args_sha256 IS NULL AND NEW.args_sha256_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"args_sha256"]'), 0))
BEGIN SELECT RAISE(ABORT, 'calls are append-only'); END;

DROP TRIGGER IF EXISTS conversation_turns_refuses_update;
CREATE TRIGGER IF NOT EXISTS conversation_turns_refuses_update BEFORE UPDATE OF
  log_index, id, parent_id, message_id, thread_id, session_id, kind, occurred_at_ms,
  created_at_ms, actor, model, usage, retracted, at ON conversation_turns
BEGIN SELECT RAISE(ABORT, 'a version of a turn cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS conversation_turns_content_erased_with_entry
  BEFORE UPDATE OF content, content_salt ON conversation_turns
  WHEN NOT (NEW.content IS NULL AND NEW.content_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"content"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a turn cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS conversation_turns_attributes_erased_with_entry
  BEFORE UPDATE OF attributes_json, attributes_json_salt ON conversation_turns
  WHEN NOT (NEW.attributes_json IS NULL AND NEW.attributes_json_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"attributes"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a turn cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS conversation_turns_reason_erased_with_entry
  BEFORE UPDATE OF reason, reason_salt ON conversation_turns
  WHEN NOT (NEW.reason IS NULL AND NEW.reason_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"reason"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a turn cannot be changed'); END;

DROP TRIGGER IF EXISTS tool_calls_refuses_update;
CREATE TRIGGER IF NOT EXISTS tool_calls_refuses_update BEFORE UPDATE OF
  log_index, request_id, call_id, parent_id, session_id, vendor, tool_name, args_form, status,
  late, started_at_ms, ended_at_ms, latency_ms, outcome_form, error_kind, usage, actor, model,
  paths_outside, requested_index, created_index, at ON tool_calls
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS tool_calls_args_sha256_erased_with_entry
  BEFORE UPDATE OF args_sha256, args_sha256_salt ON tool_calls
  WHEN NOT (NEW.args_sha256 IS NULL AND NEW.args_sha256_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"args_sha256"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS tool_calls_arguments_erased_with_entry
  BEFORE UPDATE OF arguments_json, arguments_json_salt ON tool_calls
  WHEN NOT (NEW.arguments_json IS NULL AND NEW.arguments_json_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"arguments"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS tool_calls_outcome_sha256_erased_with_entry
  BEFORE UPDATE OF outcome_sha256, outcome_sha256_salt ON tool_calls
  WHEN NOT (NEW.outcome_sha256 IS NULL AND NEW.outcome_sha256_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"outcome_sha256"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS tool_calls_outcome_erased_with_entry
  BEFORE UPDATE OF outcome_json, outcome_json_salt ON tool_calls
  WHEN NOT (NEW.outcome_json IS NULL AND NEW.outcome_json_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"outcome"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS tool_calls_error_msg_erased_with_entry
  BEFORE UPDATE OF error_msg, error_msg_salt ON tool_calls
  WHEN NOT (NEW.error_msg IS NULL AND NEW.error_msg_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"error_msg"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS tool_calls_attributes_erased_with_entry
  BEFORE UPDATE OF attributes_json, attributes_json_salt ON tool_calls
  WHEN NOT (NEW.attributes_json IS NULL AND NEW.attributes_json_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"attributes"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be changed'); END;

DROP TRIGGER IF EXISTS code_edit_proposals_refuses_update;
CREATE TRIGGER IF NOT EXISTS code_edit_proposals_refuses_update BEFORE UPDATE OF
  log_index, request_id, session_id, confidence, status, created_at_ms, decided_at_ms,
  decided_by, applied_at_ms, commit_hash, reverted_at_ms, revert_commit_hash, paths_outside,
  created_index, decided_index, at ON code_edit_proposals
BEGIN SELECT RAISE(ABORT, 'a version of a proposal cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS code_edit_proposals_diffs_erased_with_entry
  BEFORE UPDATE OF diffs_json, diffs_json_salt ON code_edit_proposals
  WHEN NOT (NEW.diffs_json IS NULL AND NEW.diffs_json_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"diffs"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a proposal cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS code_edit_proposals_reason_erased_with_entry
  BEFORE UPDATE OF reason, reason_salt ON code_edit_proposals
  WHEN NOT (NEW.reason IS NULL AND NEW.reason_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"reason"]'), 0))
BEGIN SELECT RAISE(ABORT, 'a version of a proposal cannot be changed'); END;

DROP TRIGGER IF EXISTS approvals_refuses_update;
CREATE TRIGGER IF NOT EXISTS approvals_refuses_update BEFORE UPDATE OF
  log_index, request_id, call_id, session_id, decision, decided_by, at ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals are append-only'); END;
CREATE TRIGGER IF NOT EXISTS approvals_reason_erased_with_entry
  BEFORE UPDATE OF reason, reason_salt ON approvals
  WHEN NOT (NEW.reason IS NULL AND NEW.reason_salt IS NULL
    AND ifnull(instr((SELECT fields FROM erasing), '[' || OLD.log_index || ',"reason"]'), 0))
BEGIN SELECT RAISE(ABORT, 'approvals are append-only'); END;
