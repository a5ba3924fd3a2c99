-- What was in a state that it has left, by when it left: for lists of a state as of the past, which
-- so look at nothing but what is in that state now and what left it since.
CREATE INDEX IF NOT EXISTS idx_tool_calls_left
  ON tool_calls(status, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_proposals_left
  ON code_edit_proposals(status, superseded_by) WHERE superseded_by IS NOT NULL;
