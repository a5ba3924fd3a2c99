"""What a ledger holds, told naively: plain lists and dicts, no hashes kept, nothing clever."""

from contract.calls import NOON_US

TYPES = ("plan", "analysis", "decision", "reflection")
STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")
NEXT = {
    "INIT": ("GATHER",),
    "GATHER": ("ANALYZE",),
    "ANALYZE": ("PLAN",),
    "PLAN": ("APPLY",),
    "APPLY": ("VERIFY",),
    "VERIFY": ("DONE", "GATHER"),
    "DONE": (),
    "CANCELLED": (),
}


class Model:
    """What a ledger holds, told naively."""

    def __init__(self):
        self.now = NOON_US
        self.at = NOON_US
        self.size = 1
        self.thoughts = []
        self.sessions = {}
        self.tasks = {}
        self.settings = {"writeback": "any", "transitions": "open"}

    def step(self, entries=1):
        """A unit of so many entries; its time and first index."""
        self.at = max(self.now, self.at + 1)
        first, self.size = self.size, self.size + entries
        return self.at, first

    def newest(self, task_id):
        return next((one for one in reversed(self.thoughts) if one.task_id == task_id), None)

    def gate_is_open(self, task_id):
        newest = self.newest(task_id)
        if self.settings["writeback"] == "any":
            return newest is not None
        return newest is not None and newest.type == "reflection"

    def allowed(self, status):
        return (*NEXT[status], "CANCELLED") if NEXT[status] else ()


class Session:
    """A session in the model."""

    def __init__(self, genesis, index, task_id, proof_grade, at):
        self.tip, self.index, self.task_id = genesis, index, task_id
        self.proof_grade, self.at = proof_grade, at
        self.thoughts = []
        self.sealed = self.ended = None

    @property
    def state(self):
        return "ended" if self.ended else "sealed" if self.sealed else "open"

    def is_closed(self):
        newest = self.thoughts[-1]
        of_task = not self.proof_grade or self.task_id in (None, newest.task_id)
        return newest.type == "reflection" and of_task
