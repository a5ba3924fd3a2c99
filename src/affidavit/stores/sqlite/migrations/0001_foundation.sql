-- The log: one row an entry, dense from 0. The leaf hash stands beside its entry, so that a changed
-- entry is found at its own place and proofs need not hash again.
CREATE TABLE IF NOT EXISTS log (
  log_index  INTEGER PRIMARY KEY,
  entry      BLOB NOT NULL,
  leaf_hash  BLOB NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS log_refuses_update BEFORE UPDATE ON log
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS log_refuses_delete BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Decisions. The log index is the primary key, so that VACUUM cannot renumber.
CREATE TABLE IF NOT EXISTS thought_records (
  log_index          INTEGER PRIMARY KEY,
  id                 TEXT NOT NULL UNIQUE,
  type               TEXT NOT NULL,
  task_id            TEXT NOT NULL,
  agent_id           TEXT NOT NULL,
  content            TEXT NOT NULL,
  timestamp          TEXT NOT NULL,
  prev_hash          TEXT NOT NULL,
  hash               TEXT NOT NULL UNIQUE,
  created_at         TEXT NOT NULL,
  session_id         TEXT,
  session_seq        INTEGER,
  content_hash       TEXT,
  chain_hash         TEXT,
  parent_chain_hash  TEXT,
  at                 INTEGER NOT NULL,
  erased_at          TEXT
) STRICT;

CREATE INDEX IF NOT EXISTS idx_trail_task ON thought_records(task_id, created_at);
CREATE INDEX IF NOT EXISTS idx_trail_prev ON thought_records(prev_hash);
-- The newest record of a task is the one with the highest log index, whatever its created_at says.
CREATE INDEX IF NOT EXISTS idx_trail_latest ON thought_records(task_id, log_index);
-- Not unique: a second record at one place of a session is for verification to find, not to prevent.
CREATE INDEX IF NOT EXISTS idx_trail_session ON thought_records(session_id, log_index)
  WHERE session_id IS NOT NULL;

CREATE TRIGGER IF NOT EXISTS thought_records_refuses_update BEFORE UPDATE ON thought_records
BEGIN SELECT RAISE(ABORT, 'thought records are append-only'); END;
CREATE TRIGGER IF NOT EXISTS thought_records_refuses_delete BEFORE DELETE ON thought_records
BEGIN SELECT RAISE(ABORT, 'thought records are append-only'); END;

CREATE TABLE IF NOT EXISTS sessions (
  log_index             INTEGER PRIMARY KEY,
  session_id            TEXT NOT NULL UNIQUE,
  task_id               TEXT,
  caller                TEXT,
  intent                TEXT,
  intent_salt           BLOB,
  started_at            TEXT NOT NULL,
  genesis               TEXT NOT NULL,
  continues_session_id  TEXT,
  continues_chain_hash  TEXT,
  proof_grade           INTEGER NOT NULL,
  project               TEXT,
  model                 TEXT,
  at                    INTEGER NOT NULL,
  ended_index           INTEGER,
  ended_at              TEXT,
  end_reason            TEXT
) STRICT;

CREATE INDEX IF NOT EXISTS idx_sessions_task ON sessions(task_id, log_index);
CREATE INDEX IF NOT EXISTS idx_sessions_open ON sessions(log_index) WHERE ended_index IS NULL;

CREATE TRIGGER IF NOT EXISTS sessions_refuses_update BEFORE UPDATE OF
  log_index, session_id, task_id, caller, intent, intent_salt, started_at, genesis,
  continues_session_id, continues_chain_hash, proof_grade, project, model, at ON sessions
BEGIN SELECT RAISE(ABORT, 'how a session started cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS sessions_end_once
  BEFORE UPDATE OF ended_index, ended_at, end_reason ON sessions WHEN OLD.ended_index IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a session ends once'); END;
CREATE TRIGGER IF NOT EXISTS sessions_refuses_delete BEFORE DELETE ON sessions
BEGIN SELECT RAISE(ABORT, 'sessions cannot be deleted'); END;

CREATE TABLE IF NOT EXISTS seals (
  log_index           INTEGER PRIMARY KEY,
  session_id          TEXT NOT NULL UNIQUE,
  root                TEXT NOT NULL,
  record_count        INTEGER NOT NULL,
  chain_hash          TEXT NOT NULL,
  closing_reflection  INTEGER NOT NULL,
  entries_root        TEXT NOT NULL,
  entry_count         INTEGER NOT NULL,
  finalized_at        TEXT NOT NULL,
  first_index         INTEGER NOT NULL,
  last_index          INTEGER NOT NULL,
  at                  INTEGER NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS seals_refuses_update BEFORE UPDATE ON seals
BEGIN SELECT RAISE(ABORT, 'a seal cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS seals_refuses_delete BEFORE DELETE ON seals
BEGIN SELECT RAISE(ABORT, 'a seal cannot be deleted'); END;

-- Every state a task was ever in. A text stands only in the version that brought it.
CREATE TABLE IF NOT EXISTS task_versions (
  log_index          INTEGER PRIMARY KEY,
  id                 TEXT NOT NULL,
  title              TEXT,
  title_salt         BLOB,
  description        TEXT,
  description_salt   BLOB,
  reason             TEXT,
  reason_salt        BLOB,
  title_index        INTEGER NOT NULL,
  description_index  INTEGER,
  project_id         TEXT,
  status             TEXT NOT NULL,
  priority           TEXT,
  assignee           TEXT,
  attempt            INTEGER NOT NULL,
  created_at         TEXT NOT NULL,
  updated_at         TEXT NOT NULL,
  deleted_at         TEXT,
  created_index      INTEGER NOT NULL,
  at                 INTEGER NOT NULL,
  superseded_by      INTEGER
) STRICT;

CREATE INDEX IF NOT EXISTS idx_task_versions_id ON task_versions(id, log_index);
CREATE INDEX IF NOT EXISTS idx_tasks_order ON task_versions(created_index, log_index)
  WHERE superseded_by IS NULL;
CREATE INDEX IF NOT EXISTS idx_tasks_status ON task_versions(status, created_index)
  WHERE superseded_by IS NULL;
CREATE INDEX IF NOT EXISTS idx_tasks_project ON task_versions(project_id, created_index)
  WHERE superseded_by IS NULL;

CREATE TRIGGER IF NOT EXISTS task_versions_refuses_update BEFORE UPDATE OF
  log_index, id, title, title_salt, description, description_salt, reason, reason_salt, title_index,
  description_index, project_id, status, priority, assignee, attempt, created_at, updated_at,
  deleted_at, created_index, at ON task_versions
BEGIN SELECT RAISE(ABORT, 'a version of a task cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS task_versions_superseded_once
  BEFORE UPDATE OF superseded_by ON task_versions WHEN OLD.superseded_by IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a version of a task is superseded once'); END;
CREATE TRIGGER IF NOT EXISTS task_versions_refuses_delete BEFORE DELETE ON task_versions
BEGIN SELECT RAISE(ABORT, 'a version of a task cannot be deleted'); END;

-- Tasks as they are now; deleted ones have deleted_at.
CREATE VIEW IF NOT EXISTS tasks AS
SELECT v.id, v.project_id, t.title, d.description, v.status, v.priority, v.assignee,
       v.created_at, v.updated_at, v.deleted_at, v.attempt, v.log_index, v.created_index, v.at
FROM task_versions AS v
LEFT JOIN task_versions AS t ON t.log_index = v.title_index
LEFT JOIN task_versions AS d ON d.log_index = v.description_index
WHERE v.superseded_by IS NULL;

CREATE TABLE IF NOT EXISTS setting_changes (
  log_index   INTEGER PRIMARY KEY,
  name        TEXT NOT NULL,
  old         TEXT,
  new         TEXT NOT NULL,
  changed_by  TEXT,
  at          INTEGER NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS setting_changes_refuses_update BEFORE UPDATE ON setting_changes
BEGIN SELECT RAISE(ABORT, 'setting changes are append-only'); END;
CREATE TRIGGER IF NOT EXISTS setting_changes_refuses_delete BEFORE DELETE ON setting_changes
BEGIN SELECT RAISE(ABORT, 'setting changes are append-only'); END;

-- Inner nodes of trees. Tree 0 is the log's, of which every eighth level is kept (256 leaves, 65,536,
-- ...); any other tree is that of the session sealed at that log index, kept whole above its leaves.
CREATE TABLE IF NOT EXISTS merkle_nodes (
  tree      INTEGER NOT NULL,
  level     INTEGER NOT NULL,
  position  INTEGER NOT NULL,
  hash      BLOB NOT NULL,
  PRIMARY KEY (tree, level, position)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS merkle_nodes_refuses_update BEFORE UPDATE ON merkle_nodes
BEGIN SELECT RAISE(ABORT, 'tree nodes cannot be changed'); END;
CREATE TRIGGER IF NOT EXISTS merkle_nodes_refuses_delete BEFORE DELETE ON merkle_nodes
BEGIN SELECT RAISE(ABORT, 'tree nodes cannot be deleted'); END;

-- Callers' keys for safe retries: which call a key stood for (as a salted digest) and what it wrote.
-- Not a view of the log.
CREATE TABLE IF NOT EXISTS idempotency_keys (
  key           TEXT PRIMARY KEY,
  operation     TEXT NOT NULL,
  salt          BLOB NOT NULL,
  input_digest  BLOB NOT NULL,
  first_index   INTEGER NOT NULL,
  last_index    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The lower-level record of what happened to sessions and settings, oldest first.
CREATE VIEW IF NOT EXISTS audit_events AS
SELECT log.log_index,
       json_extract(CAST(log.entry AS TEXT), '$.at') AS at,
       json_extract(CAST(log.entry AS TEXT), '$.kind') AS kind,
       json_extract(CAST(log.entry AS TEXT), '$.body') AS body,
       json_extract(CAST(log.entry AS TEXT), '$.src') AS src
FROM (
  SELECT 0 AS log_index
  UNION ALL SELECT log_index FROM sessions
  UNION ALL SELECT ended_index FROM sessions WHERE ended_index IS NOT NULL
  UNION ALL SELECT log_index FROM seals
  UNION ALL SELECT log_index FROM setting_changes
) AS events
JOIN log ON log.log_index = events.log_index
ORDER BY log.log_index;
