"""What the server says to a model that is not about one tool: instructions and the prompt."""

from __future__ import annotations

import json
from typing import Final

# The first 300 bytes stand alone: some clients show no more.
INSTRUCTIONS: Final = """\
Affidavit keeps the sworn record of your work. Call thought_record when you choose between
options, before an edit that is hard to undo, and before saying done: what, why, what else, what
is in doubt. Call task_create when work begins; a task needs a record before it is DONE.

For work that must be provable: audit_session_start {intent}, thought_record with its session_id
as you go, audit_verify_chain, a thought_record of type reflection, merkle_finalize, merkle_root,
audit_session_end, in this order.

Records cannot be changed or deleted. To correct one, record another that names its id. Never
record secrets. An answer is {"ok": true, "data"} or {"ok": false, "error"}; the task_* tools tell
a refusal as data.ok = false. A refusal says what to call next. To make a retry safe, send the
same _meta["affidavit/idempotency-key"] with the same arguments.
"""

PROMPT: Final = "proof_grade_task"
PROMPT_TITLE: Final = "Do a task so that it can be proved"
PROMPT_SHOWS: Final = "Every call of a proof-grade task in its order, from the session to its root"


def proof_grade_task(title: str, agent: str) -> str:
    """The whole sequence of a proof-grade task, as calls in their order."""
    task = {"type": "", "task_id": "<task id>", "agent_id": agent, "session_id": "<session id>"}

    def record(type_: str, content: str) -> dict[str, str]:
        return {**task, "type": type_, "content": content}

    steps = [
        ("task_create", {"title": title}),
        (
            "audit_session_start",
            {"intent": title, "task_id": "<task id>", "proof_grade": True},
        ),
        ("thought_record", record("plan", "What you intend to do, and why this way.")),
        ("thought_record", record("decision", "What you chose, what else there was, and why.")),
        ("audit_verify_chain", {"session_id": "<session id>"}),
        (
            "thought_record",
            record("reflection", "What happened, what was proved, what remains uncertain."),
        ),
        ("task_update", {"id": "<task id>", "patch": {"status": "DONE"}}),
        ("merkle_finalize", {"session_id": "<session id>"}),
        ("merkle_root", {"session_id": "<session id>"}),
        ("audit_session_end", {"session_id": "<session id>"}),
    ]
    lines = [
        f"{number}. {tool} {json.dumps(given, ensure_ascii=False)}"
        for number, (tool, given) in enumerate(steps, start=1)
    ]
    return "\n".join(
        [
            f"Do this task so that its record can be proved: {title}",
            "",
            (
                "Make these calls in this order. <task id> is data.id of the answer to step 1, "
                "<session id> is data.session_id of the answer to step 2. Write your own words as "
                "content; do the work between steps 3 and 5, and record each choice you make as "
                "in step 4. If step 5 does not answer valid: true, stop and say so. The "
                "reflection comes before merkle_finalize: what is recorded later is not in the "
                "root."
            ),
            "",
            *lines,
            "",
            "Then tell the person the root of step 9 and the session id.",
        ]
    )
