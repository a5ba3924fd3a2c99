-- What was said, called and proposed. Every version has its row; the one in force has no
-- superseded_by, and a row that stands aside (a late result, a beaten retraction) points at itself.
-- The indexes serve now and every earlier moment alike.
CREATE TABLE IF NOT EXISTS conversation_turns (
  log_index        INTEGER PRIMARY KEY,
  id               TEXT NOT NULL,
  parent_id        TEXT,
  message_id       TEXT NOT NULL,
  thread_id        TEXT,
  session_id       TEXT,
  kind             TEXT NOT NULL,
  content          TEXT,
  content_salt     BLOB,
  occurred_at_ms   INTEGER,
  created_at_ms    INTEGER NOT NULL,
  actor            TEXT,
  model            TEXT,
  usage            TEXT,
  attributes_json  TEXT,
  attributes_json_salt  BLOB,
  retracted        INTEGER NOT NULL,
  reason           TEXT,
  reason_salt      BLOB,
  at               INTEGER NOT NULL,
  superseded_by    INTEGER
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS idx_turns_id ON conversation_turns(id, at, log_index);
CREATE INDEX IF NOT EXISTS idx_turns_message ON conversation_turns(message_id, created_at_ms, log_index);
CREATE INDEX IF NOT EXISTS idx_turns_time ON conversation_turns(created_at_ms DESC, log_index DESC);
CREATE INDEX IF NOT EXISTS idx_turns_thread ON conversation_turns(thread_id, created_at_ms, log_index)
  WHERE thread_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_turns_session ON conversation_turns(session_id, created_at_ms, log_index)
  WHERE session_id IS NOT NULL;

CREATE TRIGGER IF NOT EXISTS conversation_turns_refuses_update BEFORE UPDATE OF
  log_index, id, parent_id, message_id, thread_id, session_id, kind, content, content_salt,
  occurred_at_ms, created_at_ms, actor, model, usage, attributes_json, attributes_json_salt, retracted,
  reason, reason_salt, at ON conversation_turns
BEGIN SELECT RAISE(ABORT, 'a version of a turn cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS conversation_turns_superseded_once
  BEFORE UPDATE OF superseded_by ON conversation_turns WHEN OLD.superseded_by IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a version of a turn is superseded once'); END;
CREATE TRIGGER IF NOT EXISTS conversation_turns_refuses_delete BEFORE DELETE ON conversation_turns
BEGIN SELECT RAISE(ABORT, 'a version of a turn cannot be deleted'); END;

CREATE TABLE IF NOT EXISTS tool_calls (
  log_index            INTEGER PRIMARY KEY,
  request_id           TEXT NOT NULL,
  call_id              TEXT NOT NULL,
  parent_id            TEXT,
  session_id           TEXT,
  vendor               TEXT NOT NULL,
  tool_name            TEXT NOT NULL,
  args_form            TEXT NOT NULL,
  args_sha256          TEXT,
  args_sha256_salt     BLOB,
  arguments_json       TEXT,
  arguments_json_salt       BLOB,
  status               TEXT NOT NULL,
  late                 INTEGER NOT NULL,
  started_at_ms        INTEGER NOT NULL,
  ended_at_ms          INTEGER,
  latency_ms           INTEGER,
  outcome_form         TEXT,
  outcome_sha256       TEXT,
  outcome_sha256_salt  BLOB,
  outcome_json         TEXT,
  outcome_json_salt         BLOB,
  error_kind           TEXT,
  error_msg            TEXT,
  error_msg_salt       BLOB,
  usage                TEXT,
  actor                TEXT,
  model                TEXT,
  attributes_json      TEXT,
  attributes_json_salt      BLOB,
  paths_outside        INTEGER NOT NULL,
  requested_index      INTEGER NOT NULL,
  created_index        INTEGER NOT NULL,
  at                   INTEGER NOT NULL,
  superseded_by        INTEGER
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS idx_tool_calls_key ON tool_calls(request_id, call_id, at, log_index);
CREATE INDEX IF NOT EXISTS idx_tool_calls_request
  ON tool_calls(request_id, started_at_ms DESC, created_index DESC);
CREATE INDEX IF NOT EXISTS idx_tool_calls_parent
  ON tool_calls(parent_id, started_at_ms DESC, created_index DESC) WHERE parent_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_tool_calls_status
  ON tool_calls(status, started_at_ms DESC, created_index DESC) WHERE superseded_by IS NULL;
CREATE INDEX IF NOT EXISTS idx_tool_calls_time ON tool_calls(started_at_ms DESC, created_index DESC);
CREATE INDEX IF NOT EXISTS idx_tool_calls_session
  ON tool_calls(session_id, started_at_ms DESC, created_index DESC) WHERE session_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_tool_calls_tool
  ON tool_calls(tool_name, started_at_ms DESC, created_index DESC);
CREATE INDEX IF NOT EXISTS idx_tool_calls_vendor
  ON tool_calls(vendor, started_at_ms DESC, created_index DESC);

CREATE TRIGGER IF NOT EXISTS tool_calls_refuses_update BEFORE UPDATE OF
  log_index, request_id, call_id, parent_id, session_id, vendor, tool_name, args_form, args_sha256,
  args_sha256_salt, arguments_json, arguments_json_salt, status, late, started_at_ms, ended_at_ms,
  latency_ms, outcome_form, outcome_sha256, outcome_sha256_salt, outcome_json, outcome_json_salt,
  error_kind, error_msg, error_msg_salt, usage, actor, model, attributes_json, attributes_json_salt,
  paths_outside, requested_index, created_index, at ON tool_calls
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS tool_calls_superseded_once
  BEFORE UPDATE OF superseded_by ON tool_calls WHEN OLD.superseded_by IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a version of a tool call is superseded once'); END;
CREATE TRIGGER IF NOT EXISTS tool_calls_refuses_delete BEFORE DELETE ON tool_calls
BEGIN SELECT RAISE(ABORT, 'a version of a tool call cannot be deleted'); END;

CREATE TABLE IF NOT EXISTS code_edit_proposals (
  log_index           INTEGER PRIMARY KEY,
  request_id          TEXT NOT NULL,
  session_id          TEXT,
  diffs_json          TEXT,
  diffs_json_salt          BLOB,
  confidence          TEXT,
  status              TEXT NOT NULL,
  created_at_ms       INTEGER NOT NULL,
  decided_at_ms       INTEGER,
  decided_by          TEXT,
  reason              TEXT,
  reason_salt         BLOB,
  applied_at_ms       INTEGER,
  commit_hash         TEXT,
  reverted_at_ms      INTEGER,
  revert_commit_hash  TEXT,
  paths_outside       INTEGER NOT NULL,
  created_index       INTEGER NOT NULL,
  decided_index       INTEGER,
  at                  INTEGER NOT NULL,
  superseded_by       INTEGER
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS idx_proposals_key ON code_edit_proposals(request_id, at, log_index);
CREATE INDEX IF NOT EXISTS idx_proposals_status
  ON code_edit_proposals(status, created_at_ms DESC, created_index DESC) WHERE superseded_by IS NULL;
CREATE INDEX IF NOT EXISTS idx_proposals_time
  ON code_edit_proposals(created_at_ms DESC, created_index DESC);
CREATE INDEX IF NOT EXISTS idx_proposals_session ON code_edit_proposals(session_id, log_index)
  WHERE session_id IS NOT NULL;

CREATE TRIGGER IF NOT EXISTS code_edit_proposals_refuses_update BEFORE UPDATE OF
  log_index, request_id, session_id, diffs_json, diffs_json_salt, confidence, status, created_at_ms,
  decided_at_ms, decided_by, reason, reason_salt, applied_at_ms, commit_hash, reverted_at_ms,
  revert_commit_hash, paths_outside, created_index, decided_index, at ON code_edit_proposals
BEGIN SELECT RAISE(ABORT, 'a version of a proposal cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS code_edit_proposals_superseded_once
  BEFORE UPDATE OF superseded_by ON code_edit_proposals WHEN OLD.superseded_by IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a version of a proposal is superseded once'); END;
CREATE TRIGGER IF NOT EXISTS code_edit_proposals_refuses_delete BEFORE DELETE ON code_edit_proposals
BEGIN SELECT RAISE(ABORT, 'a version of a proposal cannot be deleted'); END;

-- Who allowed a tool call, or did not.
CREATE TABLE IF NOT EXISTS approvals (
  log_index    INTEGER PRIMARY KEY,
  request_id   TEXT NOT NULL,
  call_id      TEXT NOT NULL,
  session_id   TEXT,
  decision     TEXT NOT NULL,
  decided_by   TEXT NOT NULL,
  reason       TEXT,
  reason_salt  BLOB,
  at           INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS idx_approvals_call ON approvals(request_id, call_id, log_index);
CREATE INDEX IF NOT EXISTS idx_approvals_session ON approvals(session_id, log_index)
  WHERE session_id IS NOT NULL;

CREATE TRIGGER IF NOT EXISTS approvals_refuses_update BEFORE UPDATE ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals are append-only'); END;
CREATE TRIGGER IF NOT EXISTS approvals_refuses_delete BEFORE DELETE ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals are append-only'); END;

-- The newest version of a task as of a time.
CREATE INDEX IF NOT EXISTS idx_task_versions_at ON task_versions(id, at, log_index);
